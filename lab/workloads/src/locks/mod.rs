//! Contention for one lock, in the workloads of the literature: LB, ECSB, SOB, WCSB, WARB, DHT.
//!
//! The names and the critical sections are those of Schmid, Besta and Hoefler (High-Performance
//! Distributed RMA Locks, HPDC 2016, section 5); [`Workload`] describes each. They are written
//! once, over any fabric and any [`rma_lock::RmaLock`]: [`contend`] is one rank's part,
//! [`compared`] lists the locks.
//!
//! # Random choices
//! The kind of an acquisition (reader or writer), the length of a random wait, and the key of a
//! read depend only on the seed, the rank and the number of the acquisition ([`Draws`]), so that
//! every lock is subjected to the same demand, and a simulated run can be repeated. A
//! [`WriterShare`] is a share of acquisitions, not of ranks: with 16 ranks a fifth of a per cent of
//! the ranks would be none.
//!
//! # Checks
//! A lock that admits two writers loses increments of WCSB's counter and inserts into DHT's table;
//! both are checked at the end of a run ([`Unsound`]). The other workloads leave no trace; for them
//! the tests watch the lock itself.

mod contend;
mod draws;
mod many_locks;
mod record;
mod section;

pub use contend::{Run, RunLength, contend, contention};
pub use draws::{Drawn, Draws, WriterShare};
pub use many_locks::{Demand, Popularity, Waited, contend_for_many};
pub use record::{EXCLUSIVE, Latencies, RankRecord, SHARED};
pub use section::Unsound;

use core::{fmt, str::FromStr};
use rma_lock::locks::LockKind;
use serde::{Deserialize, Serialize};

/// Returns the compared locks: every kind except [`LockKind::ByNodeBackOff`].
pub fn compared() -> impl Iterator<Item = LockKind> {
    LockKind::ALL.into_iter().filter(|kind| *kind != LockKind::ByNodeBackOff)
}

/// A workload, by its name in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Workload {
    /// *Latency benchmark*: acquire and release, with an empty critical section; its figure is the
    /// latency.
    Lb,
    /// *Empty critical section*: the same at full speed; its figure is the throughput.
    Ecsb,
    /// *Single operation*: a reader gets a word at the lock's home, a writer puts it.
    Sob,
    /// *Workload in the critical section*: a writer increments a counter at the home (get, put), a
    /// reader gets it; then either computes for 1 to 4 µs, still inside.
    Wcsb,
    /// *Wait after release*: an empty critical section, and 1 to 4 µs of computing between a
    /// release and the next acquisition.
    Warb,
    /// *Distributed hashtable*: a writer inserts a key into a table at the home, a reader looks one
    /// up.
    Dht,
}

impl Workload {
    /// All of them, in the order of the literature.
    pub const ALL: [Workload; 6] =
        [Workload::Lb, Workload::Ecsb, Workload::Sob, Workload::Wcsb, Workload::Warb, Workload::Dht];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::Lb => "LB",
            Workload::Ecsb => "ECSB",
            Workload::Sob => "SOB",
            Workload::Wcsb => "WCSB",
            Workload::Warb => "WARB",
            Workload::Dht => "DHT",
        }
    }

    /// Returns whether its figures are latencies only: then every acquisition is timed.
    pub const fn is_about_latency(self) -> bool {
        matches!(self, Workload::Lb)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no workload is called `{name}`; there are {}", Workload::ALL.map(Workload::name).join(", "))]
pub struct UnknownWorkload {
    name: String,
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Self, UnknownWorkload> {
        let known = Self::ALL.into_iter().find(|workload| workload.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownWorkload { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_in_any_case() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().to_lowercase().parse(), Ok(workload));
            assert_eq!(serde_json::to_string(&workload).unwrap_or_default(), format!("\"{workload}\""));
        }
        assert!("spin".parse::<Workload>().is_err());
    }
}
