//! Which lock for which job.

use crate::{Fairness, Levels};
use core::fmt;

/// A lock that [`crate::AnyLock`] can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockKind {
    /// [`crate::RpLock`].
    ReaderPreference,
    /// [`crate::BackOffLock`], with the default back-off.
    BackOff,
    /// [`crate::Aggregated`] over [`crate::RpLock`].
    Nodes(Levels),
    /// [`crate::IndicatorLock`] over [`crate::RpLock`].
    Indicator,
}

/// What a program knows of its accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing in particular.
    #[default]
    Mixed,
    /// Hardly ever do two want the lock at a time.
    MostlyFree,
    /// Fewer than one access in as many as there are nodes is exclusive.
    MostlyShared,
}

/// A lock, and why it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
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

/// A home serves so many units' readers, one after the other, in about the time that two more levels take.
const RADIX: u32 = 64;
/// Nodes from which on a tree is worth its levels.
const MANY_NODES: usize = 1024;
/// Ranks up to which a wave of readers at one home is over before a node's ranks have told each other.
const FEW_RANKS: usize = 16;

impl LockKind {
    /// The lock for a job of so many ranks on so many nodes.
    pub fn auto(ranks: usize, nodes: usize, hint: Hint) -> Choice {
        use Reason::*;
        let alone = ranks <= nodes;
        let tree = LockKind::Nodes(Levels::Tree { radix: RADIX });
        let (kind, reason) = match hint {
            Hint::MostlyFree => (LockKind::BackOff, MostlyFree),
            Hint::MostlyShared if nodes > 1 => (LockKind::Indicator, MostlyShared),
            _ if nodes >= MANY_NODES => (tree, ManyNodes),
            _ if nodes <= 1 => (LockKind::ReaderPreference, OneNode),
            _ if ranks <= FEW_RANKS => (LockKind::ReaderPreference, Few),
            _ if alone => (LockKind::ReaderPreference, RanksAlone),
            _ => (LockKind::Nodes(Levels::Nodes), Shared),
        };
        Choice { kind, why: Why::For { ranks, nodes, reason } }
    }

    /// Who gets in when several want to.
    pub fn fairness(self) -> Fairness {
        match self {
            LockKind::ReaderPreference | LockKind::Nodes(_) => Fairness::ReadersFirst,
            LockKind::BackOff => Fairness::Barging,
            LockKind::Indicator => Fairness::Alternating,
        }
    }
}

impl From<LockKind> for Choice {
    fn from(kind: LockKind) -> Self {
        Choice { kind, why: Why::Asked }
    }
}

/// [`LockKind::ReaderPreference`].
impl Default for Choice {
    fn default() -> Self {
        LockKind::ReaderPreference.into()
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockKind::ReaderPreference => f.write_str("reader preference"),
            LockKind::BackOff => f.write_str("back-off"),
            LockKind::Nodes(Levels::Nodes) => f.write_str("reader preference above nodes"),
            LockKind::Nodes(Levels::Tree { radix }) => write!(f, "reader preference above a tree of radix {radix}"),
            LockKind::Indicator => f.write_str("reader indicator"),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Why::For { ranks, nodes, reason } = self.why else { return write!(f, "{}, as asked for", self.kind) };
        write!(f, "{}, for {ranks} ranks on {nodes} nodes: ", self.kind)?;
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
        assert_eq!(chosen(4096, 128, Hint::Mixed), LockKind::Nodes(Levels::Nodes));
        assert_eq!(chosen(4096, 128, Hint::MostlyShared), LockKind::Indicator);
        assert_eq!(chosen(4096, 128, Hint::MostlyFree), LockKind::BackOff);
        assert_eq!(chosen(663_552, 82_944, Hint::Mixed), LockKind::Nodes(Levels::Tree { radix: 64 }));
        let said = LockKind::auto(4096, 128, Hint::Mixed).to_string();
        assert_eq!(
            said,
            "reader preference above nodes, for 4096 ranks on 128 nodes: a node's ranks go to the home together"
        );
        assert_eq!(Choice::from(LockKind::BackOff).to_string(), "back-off, as asked for");
    }
}
