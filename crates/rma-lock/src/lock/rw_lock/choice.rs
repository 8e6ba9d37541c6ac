//! The choice of a lock for a job.

use super::LockKind;
use core::fmt;

/// The order in which ranks acquire a [`crate::RwLock`], and further properties of the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Readers never wait for a waiting writer, and cannot starve; writers can, under a steady
    /// stream of readers. Locking is one atomic in either mode, and so is unlocking. Running
    /// writers may pass waiting ones, a limited number of times ([`crate::locks::BargingLock`]).
    #[default]
    ReaderPreference,
    /// In order of arrival; adjacent readers enter together. No rank starves.
    Fair,
    /// Readers do not enter while a writer waits; they starve under a steady stream of writers.
    WritersFirst,
    /// Reader preference in which the ranks of a node access the home together, in a tree if there
    /// are very many nodes; if no ranks share a node, [`LockKind::ReaderPreference`].
    NodeAware,
    /// Reader preference that continues after ranks other than the home have died; acquisitions
    /// return [`crate::LockError::Torn`] if one of them was writing
    /// ([`crate::RwLock::recoverable`]).
    Recoverable,
}

impl Policy {
    /// Chooses the lock for a job of `ranks` ranks on `nodes` nodes.
    pub fn choose(self, ranks: usize, nodes: usize) -> Choice {
        match self {
            Policy::ReaderPreference => LockKind::Barging.into(),
            Policy::Fair => LockKind::Fair.into(),
            Policy::WritersFirst => LockKind::WritersFirst.into(),
            Policy::NodeAware => LockKind::auto(ranks, nodes, Hint::Mixed),
            Policy::Recoverable => LockKind::Recoverable.into(),
        }
    }
}

/// A program's knowledge about its accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing in particular.
    #[default]
    Mixed,
    /// Two ranks rarely request the lock at the same time.
    MostlyFree,
    /// Fewer than one access in `n` is exclusive, where `n` is the number of nodes.
    MostlyShared,
}

/// A lock, and the reason why it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kind of the lock.
    pub kind: LockKind,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Asked,
    For { ranks: usize, nodes: usize, reason: Reason },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    MostlyFree,
    MostlyShared,
    OneNode,
    RanksAlone,
    Few,
    Shared,
    ManyNodes,
}

/// The number of units whose readers a home serves, one after the other, in about the time that two
/// more levels take.
const RADIX: u32 = 64;
/// The number of nodes from which the additional levels of a tree pay off.
const MANY_NODES: usize = 1024;
/// The number of ranks up to which a wave of readers at one home ends before a node's ranks have
/// notified each other.
const FEW_RANKS: usize = 16;

impl LockKind {
    /// Returns the lock for a job of `ranks` ranks on `nodes` nodes.
    pub fn auto(ranks: usize, nodes: usize, hint: Hint) -> Choice {
        use Reason::*;
        let alone = ranks <= nodes;
        let tree = LockKind::Tree { radix: RADIX };
        let (kind, reason) = match hint {
            Hint::MostlyFree => (LockKind::BackOff, MostlyFree),
            Hint::MostlyShared if nodes > 1 => (LockKind::Indicator, MostlyShared),
            _ if nodes >= MANY_NODES => (tree, ManyNodes),
            _ if nodes <= 1 => (LockKind::ReaderPreference, OneNode),
            _ if ranks <= FEW_RANKS => (LockKind::ReaderPreference, Few),
            _ if alone => (LockKind::ReaderPreference, RanksAlone),
            _ => (LockKind::ByNode, Shared),
        };
        Choice { kind, why: Why::For { ranks, nodes, reason } }
    }
}

impl From<LockKind> for Choice {
    fn from(kind: LockKind) -> Self {
        Choice { kind, why: Why::Asked }
    }
}

/// The choice of the default policy.
impl Default for Choice {
    fn default() -> Self {
        Policy::default().choose(1, 1)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LockKind::ReaderPreference => f.write_str("reader preference"),
            LockKind::ByNode => f.write_str("reader preference above nodes"),
            LockKind::Tree { radix } => write!(f, "reader preference above a tree of radix {radix}"),
            LockKind::Indicator => f.write_str("reader indicator"),
            kind => kind.fmt(f),
        }?;
        let Why::For { ranks, nodes, reason } = self.why else { return f.write_str(", as asked for") };
        write!(f, ", for {ranks} ranks on {nodes} nodes: ")?;
        f.write_str(match reason {
            Reason::MostlyFree => "mostly free, where one atomic is all there is to it",
            Reason::MostlyShared => "mostly shared, so readers stay at their node",
            Reason::OneNode => "no other node to go to",
            Reason::RanksAlone => "no node has two ranks to share anything",
            Reason::Few => "few enough for one home",
            Reason::Shared => "a node's ranks go to the home together",
            Reason::ManyNodes => "too many nodes for one home",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_the_job_and_says_why() {
        let chosen = |ranks, nodes, hint| LockKind::auto(ranks, nodes, hint).kind;
        assert_eq!(chosen(8, 2, Hint::Mixed), LockKind::ReaderPreference);
        assert_eq!(chosen(128, 128, Hint::Mixed), LockKind::ReaderPreference);
        assert_eq!(chosen(64, 1, Hint::MostlyShared), LockKind::ReaderPreference);
        assert_eq!(chosen(4096, 128, Hint::Mixed), LockKind::ByNode);
        assert_eq!(chosen(4096, 128, Hint::MostlyShared), LockKind::Indicator);
        assert_eq!(chosen(4096, 128, Hint::MostlyFree), LockKind::BackOff);
        assert_eq!(chosen(663_552, 82_944, Hint::Mixed), LockKind::Tree { radix: 64 });
        let said = LockKind::auto(4096, 128, Hint::Mixed).to_string();
        assert_eq!(
            said,
            "reader preference above nodes, for 4096 ranks on 128 nodes: a node's ranks go to the home together"
        );
        assert_eq!(Choice::from(LockKind::BackOff).to_string(), "back-off, as asked for");
        assert_eq!(Policy::NodeAware.choose(4096, 128).kind, LockKind::ByNode);
        assert_eq!(Policy::default().choose(4096, 128), Choice::default());
    }
}
