//! The reduction: acts that no other rank can observe happen immediately. This must lose no
//! outcome, so random programs must end in the same ways with and without it.

mod program;

use explore::{Explorer, Unread};
use fastrand::Rng;
use program::{Dice, ends};
use rdma_fabric::{Caps, PutOrder, Rank};

/// Random programs to compare.
#[derive(Clone, Copy)]
struct Comparison {
    ranks: usize,
    /// The number of lines of each rank.
    lines: usize,
    programs: u64,
    order: PutOrder,
    /// The number of ranks that may die.
    mortal: u32,
    /// Whether atomics are also atomic with respect to puts and stores.
    coherent: bool,
    /// Whether operations are acknowledged before they are visible, and those without a read.
    acknowledged: Option<Option<Unread>>,
    /// Whether puts to one target keep their order.
    in_order: bool,
    drops: bool,
    /// Whether each rank has a helper.
    helped: bool,
}

const USUAL: Comparison = Comparison {
    ranks: 2,
    lines: 3,
    programs: 40,
    order: PutOrder::None,
    mortal: 0,
    coherent: true,
    acknowledged: None,
    in_order: false,
    drops: false,
    helped: false,
};

/// Explores the programs of each comparison with and without the reduction. With
/// `EXPLORE_PROGRAMS=all` (`cargo xtask reduction`) it takes all of a comparison's programs,
/// otherwise a tenth of them, and at least two.
fn compare(comparisons: &[Comparison]) {
    let all = std::env::var("EXPLORE_PROGRAMS").is_ok_and(|programs| programs == "all");
    for comparison in comparisons {
        let programs = if all { comparison.programs } else { comparison.programs.div_ceil(10).max(2) };
        compare_programs(Comparison { programs, ..*comparison });
    }
}

fn compare_programs(comparison: Comparison) {
    let Comparison { ranks, lines, programs, order, mortal, coherent, acknowledged, in_order, drops, helped } =
        comparison;
    let (mut caps, mut saved, mut most, mut compared, mut died) = (Caps::weakest(), 0i64, 0, 0, 0);
    (caps.put_order, caps.coherent_atomics, caps.puts_in_order) = (order, coherent, in_order);
    caps.helpers = helped;
    for seed in 0..programs {
        let mut dice = Dice(Rng::with_seed(seed * 1_000 + lines as u64));
        let program: Vec<Vec<_>> =
            (0..ranks).map(|_| (0..lines).map(|_| dice.line(ranks as u64, drops)).collect()).collect();
        let with = |explorer: Explorer<'_>| {
            let explorer = if drops { explorer } else { explorer.leave_together() };
            let explorer = match acknowledged {
                None => explorer,
                Some(None) => explorer.acknowledged(),
                Some(Some(unread)) => explorer.acknowledged().without_read(unread),
            };
            let explorer = (0..mortal).map(Rank::new).fold(explorer, Explorer::mortal);
            ends(explorer.caps(caps).state_limit(400_000), &program, helped, drops)
        };
        let (expected, whole, _) = with(Explorer::new(ranks).unreduced());
        let (found, reduced, dead) = with(Explorer::new(ranks));
        if !matches!(whole.verdict, explore::Verdict::Exhausted) {
            continue;
        }
        reduced.expect_exhausted();
        assert_eq!(found, expected, "seed {seed}: {program:?}");
        // Programs that await two operations together may have a few more states when reduced.
        saved += whole.states as i64 - reduced.states as i64;
        (compared, died) = (compared + 1, died + u64::from(dead > 0));
        most = most.max(expected.len());
    }
    println!(
        "{compared} of {programs} programs of {ranks} ranks, {mortal} mortal, x {lines} lines, {order:?}: {saved} states less, \
         at most {most} ends"
    );
    assert!(saved > 0 && most > 5, "nothing was compared");
    assert!(died > compared / 2 || mortal == 0, "nobody died");
}

#[test]
fn with_lost_writes_ranks_end_in_the_same_ways() {
    let lossy = Comparison { coherent: false, ..USUAL };
    compare(&[
        Comparison { programs: 60, ..lossy },
        Comparison { order: PutOrder::SameTarget, mortal: 1, ..lossy },
        Comparison { ranks: 3, lines: 2, programs: 30, ..lossy },
    ]);
}

#[test]
fn with_early_acknowledgements_ranks_end_in_the_same_ways() {
    for unread in [None, Some(Unread::Atomics), Some(Unread::FailedComparisons)] {
        let early = Comparison { coherent: false, acknowledged: Some(unread), ..USUAL };
        compare(&[
            early,
            Comparison { programs: 20, order: PutOrder::SameTarget, mortal: 1, drops: true, ..early },
            Comparison { ranks: 3, lines: 2, programs: 20, ..early },
            Comparison { lines: 2, programs: 20, helped: true, ..early },
        ]);
    }
}

#[test]
fn with_early_drops_ranks_end_in_the_same_ways() {
    let dropping = Comparison { drops: true, ..USUAL };
    compare(&[
        Comparison { programs: 60, ..dropping },
        Comparison { lines: 4, programs: 10, ..dropping },
        Comparison { lines: 2, programs: 60, order: PutOrder::SameTarget, mortal: 1, ..dropping },
        Comparison { ranks: 3, lines: 2, programs: 30, coherent: false, ..dropping },
    ]);
}

#[test]
fn with_puts_in_order_ranks_end_in_the_same_ways() {
    let ordered = Comparison { in_order: true, ..USUAL };
    compare(&[
        Comparison { programs: 60, ..ordered },
        Comparison { drops: true, mortal: 1, ..ordered },
        Comparison { ranks: 3, lines: 2, programs: 30, ..ordered },
    ]);
}

#[test]
fn two_ranks_end_in_the_same_ways() {
    compare(&[
        Comparison { programs: 100, ..USUAL },
        Comparison { lines: 4, programs: 20, ..USUAL },
        Comparison { order: PutOrder::SameTarget, ..USUAL },
    ]);
}

#[test]
fn three_ranks_end_in_the_same_ways() {
    let three = Comparison { ranks: 3, lines: 2, ..USUAL };
    compare(&[Comparison { programs: 60, ..three }, Comparison { programs: 20, order: PutOrder::AllTargets, ..three }]);
}

#[test]
fn with_deaths_two_ranks_end_in_the_same_ways() {
    compare(&[
        Comparison { programs: 100, mortal: 1, ..USUAL },
        Comparison { order: PutOrder::SameTarget, mortal: 1, ..USUAL },
        Comparison { lines: 2, programs: 60, mortal: 2, ..USUAL },
    ]);
}

#[test]
fn with_deaths_three_ranks_end_in_the_same_ways() {
    let three = Comparison { ranks: 3, lines: 2, mortal: 1, ..USUAL };
    compare(&[three, Comparison { programs: 20, order: PutOrder::AllTargets, ..three }]);
}

#[test]
fn with_helpers_ranks_end_in_the_same_ways() {
    let helped = Comparison { helped: true, ..USUAL };
    compare(&[
        Comparison { ranks: 1, lines: 4, programs: 60, ..helped },
        Comparison { lines: 2, programs: 60, ..helped },
        Comparison { programs: 60, ..helped },
        Comparison { lines: 2, mortal: 1, ..helped },
    ]);
}
