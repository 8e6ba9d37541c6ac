//! Order on real memory, by [`checks::acp::store_buffering`].

use acp::{Mode, Options};
use checks::acp::store_buffering::{Behind, Case, First, LONG, contradictions};

#[test]
fn contradictions_are_found() {
    // Each rank sees the other's round before its own, or the same one.
    assert_eq!(contradictions(&[0, 1, 2], &[1, 2, 3]), 0);
    assert_eq!(contradictions(&[0, 0, 0], &[3, 3, 3]), 0);
    // In round 2, the first rank reads round 0 of the other one, which in its round 1 reads round 1.
    assert_eq!(contradictions(&[0, 0, 1], &[1, 2, 3]), 2);
}

/// The ways in which operations are ordered after each other.
fn ordered(first: First, reads: usize) -> impl Iterator<Item = Case> {
    let behind = [Behind::All, Behind::Handle, Behind::Continue, Behind::Completed];
    // A copy from local memory would have the same pair as the copy before.
    let differs = move |behind: &Behind| !(matches!(first, First::ToSelf(_)) && *behind == Behind::Continue);
    behind.into_iter().filter(differs).map(move |behind| Case::new(first, behind, reads))
}

#[track_caller]
fn never(case: Case) {
    let broken = case.run();
    assert_eq!(broken, 0, "{case:?}: rounds in which a copy read what was there before the put ahead of it");
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_is_ordered_behind_a_put_reads_after_it() {
    for case in ordered(First::ToPeer(8), 8) {
        never(case);
    }
    // The reordering that `Order` prevents, on CPUs that reorder.
    let unordered = Case::new(First::ToPeer(8), Behind::Nothing, 8).run();
    println!("without an order: {unordered} rounds");
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_is_ordered_behind_a_copy_within_own_memory_reads_after_it() {
    ordered(First::ToSelf(8), 8).for_each(never);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn operations_after_an_atomic_read_after_its_result_is_stored() {
    ordered(First::Atomic, 8).for_each(never);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_is_ordered_behind_a_long_copy_reads_after_it() {
    for (first, reads) in [(LONG, 8), (8, LONG), (LONG, LONG)] {
        ordered(First::ToPeer(first), reads)
            .chain(ordered(First::ToSelf(first), reads))
            .for_each(|case| never(case.fewer()));
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn operations_in_a_queue_read_after_earlier_ones() {
    let direct = Options::default();
    let ways = [direct.mode(Mode::CommandQueue), direct.mode(Mode::Split).bypass(true)];
    for options in ways {
        for first in [First::ToPeer(8), First::Atomic] {
            never(Case::new(first, Behind::All, 8).by(options).fewer());
        }
    }
}
