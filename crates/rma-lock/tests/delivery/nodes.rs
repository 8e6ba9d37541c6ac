//! Locks that know nodes, right and wrong, under all delivery orders.

use crate::nodes_cases::{CASES, Case, MISTAKES, Which, explorer, job};
use crate::program::Role::{self, *};
use std::time::Instant;

/// Explore the cases that `wanted` says.
fn exhaust(wanted: impl Fn(&Case) -> bool) {
    let mut count = 0;
    for case in CASES.iter().filter(|case| wanted(case)) {
        let start = Instant::now();
        let report = explorer(case).state_limit(40_000_000).run(job(case, None));
        println!("{}: {report}, {:.2} s", case.name(), start.elapsed().as_secs_f64());
        report.expect_exhausted();
        assert!(report.states >= case.at_least, "{}: {} states explored", case.name(), report.states);
        count += 1;
    }
    assert!(count > 0, "no such case");
}

#[test]
fn nodes() {
    exhaust(|case| case.quick && case.which == Which::Nodes);
}

#[test]
fn nodes_over_a_lock_that_backs_off() {
    exhaust(|case| case.quick && case.which == Which::BackOff);
}

#[test]
fn trees() {
    exhaust(|case| case.quick && case.which == Which::Tree);
}

/// What takes longer: `cargo test --release -- --ignored`.
#[test]
#[ignore = "minutes"]
fn larger_jobs() {
    exhaust(|case| !case.quick && case.roles.len() <= 4);
}

/// Each step done wrong is found; the run that shows it can be run again.
#[test]
fn mistakes_are_caught() {
    for mistake in MISTAKES {
        let program = job(&mistake.case, Some(mistake.wrong));
        let report = explorer(&mistake.case).state_limit(1_000_000).run(&program);
        let found = report.violation().unwrap_or_else(|| panic!("{mistake:?} passed: {report}"));
        println!("{:?}: {} in {} moves, {} states", mistake.wrong, found.what, found.moves, report.states);
        let (again, timeline) = explorer(&mistake.case).replay(&found.schedule, &program);
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{mistake:?}");
    }
}

/// More ranks and rounds than can be exhausted. Repeat a failure by its seed.
#[test]
fn random_orders_of_many_ranks() {
    const RUNS: u64 = 2_000;
    let cases: [(Which, &'static [u32], &'static [Role], usize); 5] = [
        (Which::Nodes, &[0, 0, 1, 1, 1], &[Read, Read, Read, Read, Write], 3),
        (Which::Nodes, &[0, 0, 0, 1, 1, 1], &[ReadBefore, ReadDropped, Read, TryRead, WriteBefore, Write], 3),
        (Which::Nodes, &[0, 0, 0, 1, 1, 1], &[ReadBefore, ReadBefore, ReadBefore, ReadDropped, ReadDropped, Write], 3),
        (Which::Tree, &[0, 0, 1, 1, 2, 2], &[Read, ReadBefore, ReadDropped, Read, TryRead, Write], 3),
        (Which::Tree, &[0, 0, 1, 2, 3, 3], &[ReadAndPut, ReadAndPut, ReadAndPut, ReadAndPut, Read, WriteAndLook], 3),
    ];
    for (which, nodes, roles, rounds) in cases {
        let case = Case { which, nodes, roles, rounds, at_least: 0, quick: true };
        let start = Instant::now();
        let sample = explorer(&case).sample(1, RUNS, job(&case, None));
        assert!(sample.failure.is_none(), "{}: {sample}", case.name());
        println!("{}: {sample}, {:.2} s", case.name(), start.elapsed().as_secs_f64());
    }
}
