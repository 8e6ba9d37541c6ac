//! The kinds of locks and their names.

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

impl LockKind {
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

#[cfg(test)]
mod tests {
    use super::*;

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
