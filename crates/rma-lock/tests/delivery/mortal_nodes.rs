//! A lock that nodes take together, when ranks die: it is not recovered, but nobody is left waiting, and nobody comes in beside the dead.
//!
//! As [`crate::mortal`]. Ranks of a node meet in words of its first: here that one dies, or another.

use crate::{
    mortal::{names_a_loss, once},
    nodes_cases::{Case, Which, explorer_ending, is_idle},
    program::Role::{self, *},
};
use explore::{Fabric, Rank};
use rma_lock::locks::{Aggregated, RpLock};

fn exhaust(nodes: &'static [u32], roles: &'static [Role], mortal: u32, at_least: u64) {
    let case = Case { which: Which::Nodes, nodes, roles, rounds: 1, at_least, quick: true };
    let program = move |fabric: Fabric| async move {
        let role = roles[fabric.rank().index()];
        match once::<Aggregated<RpLock>>(fabric, role).await {
            Err(error) if names_a_loss(&*error) => Ok(()),
            end => end,
        }
    };
    let mortal = Rank::new(mortal);
    let explorer = explorer_ending(&case, move |view| view.is_lost(mortal) || is_idle(view, &case)).mortal(mortal);
    let report = explorer.possible("it dies", move |view| view.is_lost(mortal)).run(program);
    println!("{}, {mortal} may die: {report}", case.name());
    report.expect_exhausted();
    assert!(report.states >= case.at_least, "{}: {} states", case.name(), report.states);
}

#[test]
fn who_has_the_words_of_a_node_dies() {
    exhaust(&[0, 0], &[Read, Read], 0, 500);
    exhaust(&[0, 1, 1], &[Write, Read, Read], 1, 1_000);
}

#[test]
fn another_rank_of_a_node_dies() {
    exhaust(&[0, 0], &[Read, Read], 1, 500);
    exhaust(&[0, 0], &[Read, Write], 1, 500);
    exhaust(&[0, 1, 1], &[Write, Read, Read], 2, 1_000);
}
