//! The locks that are compared: the one table of them.

use core::{fmt, future::Future, str::FromStr};
use rma_lock::{
    RmaLock,
    locks::{
        Aggregated, BackOffLock, FairLock, IndicatorLock, PackedLock, RecoverableLock, RpLock, WindowLock,
        WritersFirstLock,
    },
};
use serde::{Deserialize, Serialize};

/// What is done with a lock, whichever it is.
pub trait OverLock {
    /// What comes out.
    type Out;

    /// Does it with `L`.
    fn with<L: RmaLock>(self) -> impl Future<Output = Self::Out>;
}

/// No lock has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lock is called `{name}`; there are {}", LockKind::ALL.map(LockKind::name).join(", "))]
pub struct UnknownLock {
    name: String,
}

macro_rules! locks {
    ($($(#[$doc:meta])* $kind:ident, $name:literal, $lock:ty;)*) => {
        /// A lock of `rma-lock`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum LockKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl LockKind {
            /// All of them.
            pub const ALL: [LockKind; [$($name),*].len()] = [$(LockKind::$kind),*];

            /// Returns the name on command lines and in tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(LockKind::$kind => $name,)*
                }
            }

            /// Does what `what` does with this lock.
            pub async fn over<O: OverLock>(self, what: O) -> O::Out {
                match self {
                    $(LockKind::$kind => what.with::<$lock>().await,)*
                }
            }
        }
    };
}

// A line for each lock, over the fabric `Fabric`; everything else follows.
locks! {
    /// The queue lock that prefers readers.
    ReaderPreference, "reader-preference", RpLock;
    /// The queue lock that prefers readers, with all that registers a writer in one word.
    Packed, "packed", PackedLock;
    /// The queue lock that prefers writers.
    WritersFirst, "writers-first", WritersFirstLock;
    /// The queue lock in order of arrival.
    Fair, "fair", FairLock;
    /// The lock of one word.
    BackOff, "back-off", BackOffLock;
    /// A window's two levels: readers lock all ranks, writers the home.
    TwoLevels, "two-levels", WindowLock;
    /// The queue lock that prefers readers, taken together by the ranks of a node.
    ByNode, "by-node", Aggregated<RpLock>;
    /// The queue lock that prefers readers, with gates for readers at the nodes.
    Indicator, "indicator", IndicatorLock<RpLock>;
    /// The packed one that goes on when ranks die.
    Recoverable, "recoverable", RecoverableLock;
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LockKind {
    type Err = UnknownLock;

    fn from_str(name: &str) -> Result<Self, UnknownLock> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownLock { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kind in LockKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap_or_default(), format!("\"{kind}\""));
        }
        let unknown =
            "spin".parse::<LockKind>().map_err(|unknown| unknown.to_string()).expect_err("there is no such lock");
        assert!(LockKind::ALL.iter().all(|kind| unknown.contains(kind.name())), "{unknown}");
    }
}
