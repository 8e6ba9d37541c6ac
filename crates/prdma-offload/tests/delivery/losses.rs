//! A rank dies at any moment: its neighbours are told so, nobody waits for ever, and who has no edge to it goes on.

use super::{
    cases::{CIRCLE, ONE_WAY, PAIR, called, case, slow},
    exchange,
    member::{Call::Parts, Case},
};
use explore::{Probe, Report};
use prdma_offload::PrdmaError;
use rdma_fabric::{Fabric, FabricError, PutOrder, Rank};
use std::error::Error;

const WEAK: PutOrder = PutOrder::None;
/// Ranks 0 and 1 exchange, rank 2 sends to itself.
const APART: &[&[usize]] = &[&[1], &[0], &[2]];
/// A fact: somebody was told.
const TOLD: u32 = 300;

fn names_the_loss(error: &(dyn Error + 'static), lost: Rank) -> bool {
    let told = FabricError::PeerLost { rank: lost };
    error.downcast_ref() == Some(&PrdmaError::Fabric(told.clone())) || error.downcast_ref() == Some(&told)
}

/// Whether members exchange something.
fn are_neighbours(case: &Case, one: usize, other: usize) -> bool {
    case.edges[one].contains(&other) || case.edges[other].contains(&one)
}

/// `lost` may die; who is told so ends well, if it is a neighbour.
fn explore(case: Case, lost: u32) -> Report {
    let lost = Rank::new(lost);
    let run = exchange::job(case);
    let tells = (0..case.ranks()).any(|me| me != lost.index() && are_neighbours(&case, me, lost.index()));
    exchange::explorer(&case)
        .mortal(lost)
        .possible("it dies", move |view| view.is_lost(lost))
        .possible("a neighbour is told", move |view| !tells || view.fact(TOLD) > 0)
        .run(move |fabric: Fabric| {
            let (me, probe) = (fabric.rank().index(), Probe::of(&fabric));
            let run = run(fabric);
            async move {
                match run.await {
                    Err(error) if are_neighbours(&case, me, lost.index()) && names_the_loss(&*error, lost) => {
                        probe.add(TOLD, 1);
                        Ok(())
                    }
                    ended => ended,
                }
            }
        })
}

fn exhaust(case: Case, lost: u32, at_least: u64) {
    let report = explore(case, lost);
    println!("{}, rank {lost} may die: {report}", case.name);
    report.expect_exhausted();
    assert!(report.states >= at_least, "{}: {} states", case.name, report.states);
}

#[test]
fn the_other_of_a_pair_is_told() {
    exhaust(slow(case("a pair x2", PAIR, 2, WEAK)), 1, 2_000);
    exhaust(slow(case("a pair x2, put order", PAIR, 2, PutOrder::SameTarget)), 0, 2_000);
    exhaust(case("a pair x1, at once", PAIR, 1, WEAK), 0, 1_000);
    exhaust(slow(case("one way x2", ONE_WAY, 2, WEAK)), 0, 300);
    exhaust(slow(case("one way x2", ONE_WAY, 2, WEAK)), 1, 400);
}

#[test]
fn the_other_of_a_pair_with_partitions_is_told() {
    exhaust(called(case("parts: a pair x2", PAIR, 2, WEAK), Parts(1)), 1, 2_000);
    let two = Case { words: 2, ..called(case("parts: one way x2", ONE_WAY, 2, WEAK), Parts(2)) };
    exhaust(two, 0, 2_500);
    exhaust(two, 1, 5_000);
}

#[test]
fn neighbours_of_three_are_told_and_others_go_on() {
    exhaust(slow(case("a circle of three x1", CIRCLE, 1, WEAK)), 0, 40_000);
    exhaust(slow(case("a pair and a loop x1", APART, 1, WEAK)), 1, 20_000);
    exhaust(slow(case("a pair and a loop x1", APART, 1, WEAK)), 2, 20_000);
}
