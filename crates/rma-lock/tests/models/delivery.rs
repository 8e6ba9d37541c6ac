//! The locks on a network that delivers in any order.
//!
//! This does for delivery what loom does for memory orders: `onesided-explore` keeps puts in flight
//! as long as the contract allows and delivers them in any order, and each rank's CPU takes its
//! next step at any time. Memory is sequentially consistent. Small cases are explored exhaustively,
//! larger ones at random.
//!
//! This file contains the smallest cases. Programs, cases and mutants are those of
//! [`checks::lock`]; `cargo xtask explore` runs all of them.

use checks::{
    acknowledged,
    exploration::check,
    lock::{
        explorations,
        program::{
            Role::{self, *},
            explorer, job,
        },
    },
};
use explore::Explorer;
use rma_lock::locks::LockKind;
use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

/// Explores the small cases of the part with the name `name`.
fn check_part(name: &str) {
    let part = explorations().into_iter().find(|(part, _)| *part == name);
    check(part.unwrap_or_else(|| panic!("no part {name:?}")).1);
}

/// Defines a test for each part.
macro_rules! parts {
    ($($test:ident: $name:literal),+ $(,)?) => {
        /// The parts that have a test.
        const PARTS: &[&str] = &[$($name),+];

        $(
            #[test]
            fn $test() {
                check_part($name);
            }
        )+
    };
}

parts! {
    reader_preference: "RpLock",
    packed: "PackedLock",
    writers_first: "WritersFirstLock",
    fair: "FairLock",
    barging: "BargingLock",
    nodes: "nodes",
    indicator: "indicator",
    back_off: "back-off",
    accesses: "accesses",
    holder_limit: "holder limit",
    locked: "locked memory",
    lifetime: "lifetime",
    crashes: "deaths",
    recovery: "recovery",
    recovery_mutants: "recovery's mutants",
    windows: "windows",
    own_by_cpu: "own atomics by the CPU",
}

/// All protocols, not only the locks.
#[test]
fn over_interfaces_that_acknowledge_early() {
    check(acknowledged::explorations());
}

#[test]
fn reads_that_are_left_out_behind_acknowledgements() {
    check(acknowledged::mutants());
}

#[test]
fn every_part_has_a_test() {
    let parts: Vec<_> = explorations().into_iter().map(|(name, _)| name).collect();
    assert_eq!(parts, PARTS);
}

/// The explorer immediately makes moves that no other rank can observe. Without this reduction the
/// lock's words end up with the same values.
#[test]
fn shortcuts_lose_no_outcome() {
    const JOBS: [&[Role]; 4] = [&[Read, Write], &[Write, Write], &[WriteBefore, Read], &[ReadReleaseDropped, Write]];
    let locks =
        [LockKind::ReaderPreference, LockKind::Packed, LockKind::WritersFirst, LockKind::Fair, LockKind::Barging];
    for (lock, roles) in locks.into_iter().flat_map(|lock| JOBS.map(|roles| (lock, roles))) {
        let ends = |explorer: Explorer<'static>| {
            let ends = Rc::new(RefCell::new(BTreeSet::new()));
            let noted = ends.clone();
            let explorer = explorer.at_end("noted", move |view| {
                let words = view.words().map(|(addr, value)| (addr.rank, addr.region.index, addr.offset, value));
                noted.borrow_mut().insert(words.collect::<Vec<_>>());
                true
            });
            let report = explorer.run(job(lock, roles, 1, None));
            report.expect_exhausted();
            (ends.take(), report.states)
        };
        let ((reduced, fewer), (whole, more)) = (ends(explorer(roles)), ends(explorer(roles).unreduced()));
        assert_eq!(reduced, whole, "{lock}, {roles:?}");
        println!("{lock}, {roles:?}: {} ends, {fewer} states instead of {more}", whole.len());
    }
}
