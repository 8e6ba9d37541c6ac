//! Locks published by others, for comparison with ours: readers-writer locks for clients that share
//! memory over RDMA, reimplemented from their papers over [`rdma_fabric::Fabric`] alone.
//!
//! They are not meant for programs: they lack the guarantees of `rma-lock` about deadlines, try
//! operations, dropped futures and deaths ([`PeerLock`]). They are in this crate so that programs
//! that need a lock do not compile them. Each module documents its sources, the differences and
//! their cost, and its correctness; the tests explore them under every delivery order.

pub mod dec;
mod lock;
pub mod mcs;
pub mod shift;

pub use lock::{PeerGuard, PeerLock, Protocol, RankState};

use crate::workloads::{
    RankFuture,
    locks::{RankRecord, Run, contend},
};
use core::{fmt, str::FromStr, time::Duration};
use rdma_fabric::Fabric;
use rma_lock::locks::{BackOff, LockKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A lock published elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// [`shift::ShiftLock`].
    ShiftLock,
    /// [`dec::DecLock`].
    DecLock,
    /// [`mcs::McsLock`], the queue lock with which both papers compare.
    Mcs,
    /// A lock that all ranks retry without a pause: [`rma_lock::locks::BackOffLock`] whose sleeps
    /// take no time.
    Spin,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 4] = [Peer::ShiftLock, Peer::DecLock, Peer::Mcs, Peer::Spin];

    /// Returns the name on command lines and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::ShiftLock => "shift-lock",
            Peer::DecLock => "dec-lock",
            Peer::Mcs => "mcs",
            Peer::Spin => "spin",
        }
    }
}

/// The options of a back-off lock that does not back off.
pub const SPIN: BackOff = BackOff { first: Duration::ZERO, doublings: 0, attempts: u32::MAX, seed: 0 };

/// A lock to measure: one of ours, or a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Competitor {
    /// A lock of `rma-lock`.
    Ours(LockKind),
    /// A published lock.
    Peer(Peer),
}

impl From<LockKind> for Competitor {
    fn from(kind: LockKind) -> Self {
        Competitor::Ours(kind)
    }
}

impl fmt::Display for Competitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Competitor::Ours(kind) => kind.fmt(f),
            Competitor::Peer(peer) => f.pad(peer.name()),
        }
    }
}

/// The text is not the name of any lock of either kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ours}; and {}", Peer::ALL.map(Peer::name).join(", "))]
pub struct UnknownCompetitor {
    ours: rma_lock::locks::UnknownLock,
}

impl FromStr for Competitor {
    type Err = UnknownCompetitor;

    fn from_str(name: &str) -> Result<Self, UnknownCompetitor> {
        match Peer::ALL.into_iter().find(|peer| peer.name() == name) {
            Some(peer) => Ok(Competitor::Peer(peer)),
            None => name.parse().map(Competitor::Ours).map_err(|ours| UnknownCompetitor { ours }),
        }
    }
}

impl Serialize for Competitor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'a> Deserialize<'a> for Competitor {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Evaluates an expression in which one name stands for the type of a [`Peer`], and another for the
/// options with which it is created: the counterpart of [`rma_lock::with_lock!`] for published
/// locks.
#[macro_export]
macro_rules! with_peer {
    ($peer:expr, $lock:ident, $options:ident => $value:expr) => {
        match $peer {
            $crate::peers::Peer::ShiftLock => $crate::with_peer!(@ $lock, $options, $crate::peers::shift::ShiftLock, (), $value),
            $crate::peers::Peer::DecLock => $crate::with_peer!(@ $lock, $options, $crate::peers::dec::DecLock, (), $value),
            $crate::peers::Peer::Mcs => $crate::with_peer!(@ $lock, $options, $crate::peers::mcs::McsLock, (), $value),
            $crate::peers::Peer::Spin => $crate::with_peer!(@ $lock, $options, ::rma_lock::locks::BackOffLock, $crate::peers::SPIN, $value),
        }
    };
    (@ $lock:ident, $options:ident, $of:ty, $made_of:expr, $value:expr) => {{
        type $lock = $of;
        let $options: <$lock as ::rma_lock::Lock>::Options = $made_of;
        $value
    }};
}

/// Returns one rank's part of contending for a lock with its usual options: [`contend`], compiled
/// here for every published lock. (Ours are compiled in [`crate::workloads::locks::contention`].)
pub fn contention(fabric: Fabric, competitor: Competitor, run: Run) -> RankFuture<RankRecord> {
    match competitor {
        Competitor::Ours(kind) => crate::workloads::locks::contention(fabric, kind, run),
        Competitor::Peer(peer) => {
            Box::pin(async move { with_peer!(peer, L, options => contend::<L>(&fabric, &run, options).await) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let ours = LockKind::ALL.map(Competitor::Ours);
        for competitor in Peer::ALL.map(Competitor::Peer).into_iter().chain(ours) {
            assert_eq!(competitor.to_string().parse(), Ok(competitor));
            let json = serde_json::to_string(&competitor).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Competitor>(&json).ok(), Some(competitor));
        }
        let unknown = "none".parse::<Competitor>().expect_err("there is no such lock").to_string();
        assert!(unknown.contains("fair") && unknown.contains("dec-lock"), "{unknown}");
    }
}
