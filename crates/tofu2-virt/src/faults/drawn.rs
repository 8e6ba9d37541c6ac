//! Faults drawn from a seed.

use super::{Fault, FaultKind, Faults};
use crate::chacha::ChaCha8;
use rdma_fabric::Time;
use std::time::Duration;

/// Parameters of the faults to draw. The job's size bounds the ranks and nodes that they affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks on each node.
    pub ranks_per_node: u32,
    /// The number of faults.
    pub faults: u32,
    /// The time before which all of them begin.
    pub within: Duration,
    /// The longest delay, slowness or stall.
    pub longest: Duration,
    /// The maximum number of faults that stop a node.
    pub node_stops: u32,
    /// Whether MRQs may overflow, which stops queues.
    pub overflows: bool,
}

impl Odds {
    /// Returns odds for ten faults within a millisecond, none longer than 20 µs and none that ends
    /// a rank or stops a queue.
    pub fn new(ranks: u32, ranks_per_node: u32) -> Self {
        Odds {
            ranks: ranks.max(1),
            ranks_per_node: ranks_per_node.max(1),
            faults: 10,
            within: Duration::from_millis(1),
            longest: Duration::from_micros(20),
            node_stops: 0,
            overflows: false,
        }
    }
}

impl Faults {
    /// Draws faults at random. The same seed and odds give the same faults everywhere.
    pub fn drawn(seed: u64, odds: &Odds) -> Self {
        let mut rng = ChaCha8::seed_from_u64(seed);
        let mut below = |bound: u64| rng.below(bound.max(1));
        let nodes = odds.ranks.div_ceil(odds.ranks_per_node.max(1));
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2);
        let mut stops = 0;
        let mut faults = Vec::new();
        for _ in 0..odds.faults {
            let at = Time::from_picos(below(nanos(odds.within)).saturating_mul(1000));
            let (from, to) = (below(nodes.into()) as u32, below(nodes.into()) as u32);
            let rank = below(odds.ranks.into()) as u32;
            let long = Duration::from_nanos(below(nanos(odds.longest)).saturating_add(1));
            let lasts = Duration::from_nanos(below(nanos(odds.longest)).saturating_add(1));
            let (engine, number) = (below(4) as u8, below(12) as u8);
            let kind = match below(8) {
                0 if stops < odds.node_stops => {
                    stops = stops.saturating_add(1);
                    FaultKind::NodeStop { node: from }
                }
                1 if odds.overflows => FaultKind::MrqOverflow { rank },
                2 => FaultKind::LinkDown { from, to, lasts },
                3 => FaultKind::LateCompletion { rank, by: long },
                4 => FaultKind::LateCredit { rank, by: long },
                5 => FaultKind::QueueStall { rank, engine, number, lasts },
                6 => FaultKind::PartialPut { rank },
                _ => FaultKind::LinkSlow { from, to, extra: long, lasts },
            };
            faults.push(Fault { at, kind });
        }
        Faults::new(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_may_be_any_numbers() {
        for odds in [
            Odds { ranks: 0, ranks_per_node: 0, ..Odds::new(8, 2) },
            Odds { ranks: u32::MAX, ranks_per_node: u32::MAX, ..Odds::new(8, 2) },
            Odds { within: Duration::ZERO, longest: Duration::ZERO, ..Odds::new(8, 2) },
            Odds { within: Duration::MAX, longest: Duration::MAX, node_stops: u32::MAX, ..Odds::new(8, 2) },
            Odds { longest: Duration::from_nanos(u64::MAX), ..Odds::new(8, 2) },
        ] {
            assert_eq!(Faults::drawn(3, &odds).as_slice().len(), 10, "{odds:?}");
        }
    }

    #[test]
    fn draws_keep_within_their_odds() {
        let odds = Odds { faults: 2000, node_stops: 3, ..Odds::new(64, 8) };
        let faults = Faults::drawn(7, &odds);
        assert_eq!(faults, Faults::drawn(7, &odds));
        assert_ne!(faults, Faults::drawn(8, &odds));
        let stops = faults.as_slice().iter().filter(|fault| matches!(fault.kind, FaultKind::NodeStop { .. })).count();
        assert_eq!(stops, 3);
        for fault in faults.as_slice() {
            assert!(fault.at < Time::from_picos(1_000_000_000));
            match fault.kind {
                FaultKind::NodeStop { node } => assert!(node < 8),
                FaultKind::LinkSlow { from, to, .. } | FaultKind::LinkDown { from, to, .. } => {
                    assert!(from < 8 && to < 8)
                }
                FaultKind::MrqOverflow { .. } => panic!("not asked for"),
                FaultKind::LateCompletion { rank, .. }
                | FaultKind::LateCredit { rank, .. }
                | FaultKind::QueueStall { rank, .. }
                | FaultKind::PartialPut { rank } => assert!(rank < 64),
            }
        }
    }
}
