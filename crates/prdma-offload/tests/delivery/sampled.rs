//! Larger jobs in random orders, their set-up included.

use super::{
    cases::{called, case},
    exchange,
    member::{
        Call::{Parts, Points},
        Case,
    },
};
use rdma_fabric::PutOrder;
use std::{env, time::SystemTime};

const RING: &[&[usize]] = &[&[1, 3], &[2, 0], &[3, 1], &[0, 2]];
/// Several edges between two, loops, edges in one direction, a member that only receives.
const MIXED: &[&[usize]] = &[&[1, 1, 0, 4], &[0, 2], &[3, 2, 2], &[0, 4, 1], &[]];

/// Where drawing begins.
pub(crate) fn first_seed() -> u64 {
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = env::var("PERSISTENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    println!("PERSISTENT_SEED={seed}");
    seed
}

#[test]
fn larger_jobs_in_random_orders() {
    let seed = first_seed();
    for order in [PutOrder::None, PutOrder::SameTarget] {
        let cases = [
            case("a ring of four x3", RING, 3, order),
            Case { words: 3, looks: true, ..case("mixed x3", MIXED, 3, order) },
            called(case("points: mixed x2", MIXED, 2, order), Points),
            Case { words: 4, looks: true, ..called(case("parts: mixed x2", MIXED, 2, order), Parts(2)) },
        ];
        for case in cases {
            let sample = exchange::explorer(&case).sample(seed, 2, exchange::job(case));
            println!("{}, {order:?}: {} runs of {} events", case.name, sample.runs, sample.events / sample.runs.max(1));
            assert!(sample.failure.is_none(), "{}, {order:?}: {sample}", case.name);
        }
    }
}
