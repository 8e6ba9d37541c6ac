//! The reader-preference lock with one mutated step: each mutant must be reported.
//!
//! `RememberedNext` is missing, because it needs three ranks and two rounds, which is too much for
//! loom; the explorer of delivery orders finds it.

use super::{
    LoomRole::{self, Clock, Read, Write, WriteBefore},
    broken,
};
use checks::lock::mutants::QueuedMutant::{self, *};
use loom_fabric::{
    Access, Config,
    Delivery::{self, AtFlush, AtPost},
    check, check_fails,
};

const DEADLOCK: &str = "deadlock";
const EXCLUSION: &str = "mutual exclusion";
const RACE: &str = "Causality violation";
const MISSED: &str = "visibility";
const CORRUPT: &str = "Corrupt";
const RESIDUE: &str = "residue";

/// A mutant, a job that shows it, and the expected reports.
type Shown = (QueuedMutant, &'static [LoomRole], usize, Delivery, &'static [&'static str]);

const SHOWN: &[Shown] = &[
    (NoSecondLook, &[Read, Write], 1, AtPost, &[DEADLOCK]),
    // A node must have been used before it needs to be initialised.
    (LateInitialisation, &[Write, Write], 2, AtPost, &[DEADLOCK, RESIDUE]),
    (HeadNotFlushed, &[Read, Write], 1, AtFlush, &[CORRUPT]),
    (ComparisonIgnored, &[Read, Write], 1, AtPost, &[EXCLUSION, RACE]),
    (DataNotFlushed, &[Read, Write], 1, AtPost, &[RACE]),
    (DataNotFlushed, &[Read, Write], 1, AtFlush, &[RACE, MISSED]),
    (StoreForSubtract, &[Read, Read, Write], 1, AtPost, &[EXCLUSION, DEADLOCK, CORRUPT]),
    (NoSweep, &[Read, Write], 1, AtPost, &[DEADLOCK]),
    (TailIgnored, &[Write, Write], 1, AtPost, &[DEADLOCK, RESIDUE]),
    (MarkIgnored, &[Write, Write], 1, AtPost, &[DEADLOCK]),
    (NoMark, &[Write, Write], 1, AtPost, &[DEADLOCK]),
    (AbandonedTakenForWoken, &[WriteBefore, Write, Clock], 1, AtPost, &[DEADLOCK, RESIDUE]),
];

#[test]
fn each_mutant_is_reported() {
    for (mutant, roles, n, delivery, expected) in SHOWN {
        print!("{mutant:?}: ");
        check_fails(Some(3), expected, broken(Some(*mutant), roles, *n, Config::new(roles.len(), *delivery)));
    }
}

#[test]
fn the_wrapper_alone_changes_nothing() {
    check(None, 48, broken(Some(QueuedMutant::Nothing), &[Read, Write], 1, Config::new(2, AtFlush)));
}

#[test]
fn relaxed_wait() {
    let config = Config { relaxed: |access| matches!(access, Access::Wait(_)), ..Config::new(2, AtPost) };
    check_fails(None, &[RACE], broken(None, &[Write, Write], 1, config));
}
