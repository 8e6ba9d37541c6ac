//! The names of the locks, and the choice of a lock for a job.

use crate::{Fairness, Lock};
use core::{fmt, str::FromStr};

/// A lock of [`crate::locks`]: the only list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// [`crate::locks::RpLock`].
    ReaderPreference,
    /// [`crate::locks::PackedLock`].
    Packed,
    /// [`crate::locks::BargingLock`].
    Barging,
    /// [`crate::locks::WritersFirstLock`].
    WritersFirst,
    /// [`crate::locks::FairLock`].
    Fair,
    /// [`crate::locks::BackOffLock`], with the default back-off.
    BackOff,
    /// [`crate::locks::WindowLock`], with the default back-off: readers lock all ranks, writers the
    /// home.
    TwoLevels,
    /// [`crate::locks::Aggregated`] over [`crate::locks::RpLock`], by node.
    ByNode,
    /// [`crate::locks::Aggregated`] over [`crate::locks::BackOffLock`], by node.
    ByNodeBackOff,
    /// [`crate::locks::Aggregated`] over [`crate::locks::RpLock`], in a tree above the nodes.
    Tree {
        /// The number of units of a level that share a word of the next:
        /// [`crate::locks::Levels::Tree`].
        radix: u32,
    },
    /// [`crate::locks::IndicatorLock`] over [`crate::locks::RpLock`].
    Indicator,
    /// [`crate::locks::RecoverableLock`], for the default number of deaths.
    Recoverable,
}

/// Evaluates an expression in which a name stands for the type of a [lock
/// kind](crate::locks::LockKind):
/// ```
/// use rma_lock::{Lock, locks::LockKind, with_lock};
/// let words = |kind| with_lock!(kind, L => <L as Lock>::HOME_WORDS);
/// assert_eq!((words(LockKind::Fair), words(LockKind::BackOff)), (2, 1));
/// ```
/// A second name, as in `with_lock!(kind, L, options => ...)`, stands for the options that create a
/// lock of the kind: the defaults, except for a tree, which is of the same type as a lock by node.
#[macro_export]
macro_rules! with_lock {
    ($kind:expr, $lock:ident => $value:expr) => {
        $crate::with_lock!($kind, $lock, _options => $value)
    };
    ($kind:expr, $lock:ident, $options:ident => $value:expr) => {
        match $kind {
            $crate::locks::LockKind::ReaderPreference => $crate::with_lock!(@ $lock, $options, $crate::locks::RpLock, Default::default(), $value),
            $crate::locks::LockKind::Packed => $crate::with_lock!(@ $lock, $options, $crate::locks::PackedLock, Default::default(), $value),
            $crate::locks::LockKind::Barging => $crate::with_lock!(@ $lock, $options, $crate::locks::BargingLock, Default::default(), $value),
            $crate::locks::LockKind::WritersFirst => $crate::with_lock!(@ $lock, $options, $crate::locks::WritersFirstLock, Default::default(), $value),
            $crate::locks::LockKind::Fair => $crate::with_lock!(@ $lock, $options, $crate::locks::FairLock, Default::default(), $value),
            $crate::locks::LockKind::BackOff => $crate::with_lock!(@ $lock, $options, $crate::locks::BackOffLock, Default::default(), $value),
            $crate::locks::LockKind::TwoLevels => $crate::with_lock!(@ $lock, $options, $crate::locks::WindowLock, Default::default(), $value),
            $crate::locks::LockKind::ByNode => $crate::with_lock!(@ $lock, $options, $crate::locks::Aggregated<$crate::locks::RpLock>, Default::default(), $value),
            $crate::locks::LockKind::Tree { radix } => {
                let levels = $crate::locks::Levels::Tree { radix };
                let of_a_tree = $crate::locks::AggregatedOptions { levels, ..Default::default() };
                $crate::with_lock!(@ $lock, $options, $crate::locks::Aggregated<$crate::locks::RpLock>, of_a_tree, $value)
            }
            $crate::locks::LockKind::ByNodeBackOff => $crate::with_lock!(@ $lock, $options, $crate::locks::Aggregated<$crate::locks::BackOffLock>, Default::default(), $value),
            $crate::locks::LockKind::Indicator => $crate::with_lock!(@ $lock, $options, $crate::locks::IndicatorLock<$crate::locks::RpLock>, Default::default(), $value),
            $crate::locks::LockKind::Recoverable => $crate::with_lock!(@ $lock, $options, $crate::locks::RecoverableLock, Default::default(), $value),
        }
    };
    (@ $lock:ident, $options:ident, $of:ty, $made_of:expr, $value:expr) => {{
        type $lock = $of;
        let $options: <$lock as $crate::Lock>::Options = $made_of;
        $value
    }};
}

/// There is no lock with the parsed name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lock is called `{name}`; there are {}", LockKind::ALL.map(LockKind::name).join(", "))]
pub struct UnknownLock {
    name: String,
}

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

    /// One of each kind; a tree is [`LockKind::ByNode`] with more levels.
    pub const ALL: [LockKind; 11] = [
        LockKind::ReaderPreference,
        LockKind::Packed,
        LockKind::Barging,
        LockKind::WritersFirst,
        LockKind::Fair,
        LockKind::BackOff,
        LockKind::TwoLevels,
        LockKind::ByNode,
        LockKind::ByNodeBackOff,
        LockKind::Indicator,
        LockKind::Recoverable,
    ];

    /// Returns the name on command lines and in tables. [`fmt::Display`] adds a tree's radix.
    pub const fn name(self) -> &'static str {
        match self {
            LockKind::ReaderPreference => "reader-preference",
            LockKind::Packed => "packed",
            LockKind::Barging => "barging",
            LockKind::WritersFirst => "writers-first",
            LockKind::Fair => "fair",
            LockKind::BackOff => "back-off",
            LockKind::TwoLevels => "two-levels",
            LockKind::ByNode => "by-node",
            LockKind::ByNodeBackOff => "by-node-back-off",
            LockKind::Tree { .. } => "tree",
            LockKind::Indicator => "indicator",
            LockKind::Recoverable => "recoverable",
        }
    }

    /// Returns the name of the lock's type.
    pub const fn type_name(self) -> &'static str {
        match self {
            LockKind::ReaderPreference => "RpLock",
            LockKind::Packed => "PackedLock",
            LockKind::Barging => "BargingLock",
            LockKind::WritersFirst => "WritersFirstLock",
            LockKind::Fair => "FairLock",
            LockKind::BackOff => "BackOffLock",
            LockKind::TwoLevels => "WindowLock",
            LockKind::ByNode | LockKind::Tree { .. } => "Aggregated<RpLock>",
            LockKind::ByNodeBackOff => "Aggregated<BackOffLock>",
            LockKind::Indicator => "IndicatorLock<RpLock>",
            LockKind::Recoverable => "RecoverableLock",
        }
    }

    /// Returns the order in which ranks acquire the lock.
    pub fn fairness(self) -> Fairness {
        crate::with_lock!(self, L => <L as Lock>::FAIRNESS)
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockKind::Tree { radix } => f.pad(&format!("tree-{radix}")),
            kind => f.pad(kind.name()),
        }
    }
}

impl FromStr for LockKind {
    type Err = UnknownLock;

    /// Parses a [name](LockKind::name) or a [type's name](LockKind::type_name).
    fn from_str(name: &str) -> Result<Self, UnknownLock> {
        if let Some(Ok(radix)) = name.strip_prefix("tree-").map(str::parse) {
            return Ok(LockKind::Tree { radix });
        }
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name || kind.type_name() == name)
            .ok_or_else(|| UnknownLock { name: name.to_owned() })
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

    #[test]
    fn names_are_read_back() {
        for kind in LockKind::ALL.into_iter().chain([LockKind::Tree { radix: 64 }]) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for kind in LockKind::ALL {
            assert_eq!(kind.type_name().parse(), Ok(kind));
        }
        let unknown = "spin".parse::<LockKind>().expect_err("there is no such lock").to_string();
        assert!(LockKind::ALL.iter().all(|kind| unknown.contains(kind.name())), "{unknown}");
    }
}
