//! The locks with queues, right and wrong, under all delivery orders.

use crate::{
    cases::{cases, mutations},
    mutant::{Step, Subject},
    program::{
        Role::{self, *},
        explorer, job,
    },
};
use explore::Explorer;
use rdma_fabric::{Caps, PutOrder};
use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Instant};

/// Explore the quick cases whose name begins so.
fn exhaust(subject: Subject, kind: impl Fn(&str) -> bool) {
    let mut count = 0;
    for case in cases().filter(|case| case.subject == subject && case.quick && kind(case.name)) {
        let start = Instant::now();
        let report = explorer(case.roles).run(job(subject, case.roles, case.rounds, Step::Right));
        println!("{subject:?} {}: {report}, {:.2} s", case.name, start.elapsed().as_secs_f64());
        report.expect_exhausted();
        assert!(report.states >= case.at_least, "{}: {} states explored", case.name, report.states);
        count += 1;
    }
    assert!(count > 0, "no such case");
}

/// The same tests for each lock.
macro_rules! tests_of {
    ($($lock:ident: $subject:expr),+ $(,)?) => {
        $(mod $lock {
            use super::*;

            #[test]
            fn readers_and_writers() {
                exhaust($subject, |name| !name.contains(": "));
            }

            #[test]
            fn trying() {
                exhaust($subject, |name| name.starts_with("tries"));
            }

            #[test]
            fn giving_up() {
                exhaust($subject, |name| name.starts_with("deadlines"));
            }

            #[test]
            fn dropping() {
                exhaust($subject, |name| name.starts_with("dropped"));
            }

            #[test]
            fn readers_that_put() {
                exhaust($subject, |name| name.starts_with("puts"));
            }

            #[test]
            fn nodes_used_again() {
                exhaust($subject, |name| name.starts_with("nodes"));
            }

            #[test]
            fn puts_in_order() {
                exhaust_in_order($subject);
            }

            #[test]
            fn mutations_are_caught() {
                catch_mutations($subject);
            }

            #[test]
            fn shortcuts_lose_no_outcome() {
                compare_with_the_unreduced($subject);
            }

            #[test]
            fn random_orders_of_many_ranks() {
                sample($subject);
            }
        })+
    };
}

tests_of! {
    flat: Subject::Flat,
    packed: Subject::Packed,
    writers_first: Subject::WritersFirst,
    fair: Subject::Fair,
}

/// Where puts come before later atomics nothing is flushed, and the locks go another way as far as operations are over when they are posted.
fn exhaust_in_order(subject: Subject) {
    const JOBS: [(&[Role], usize); 6] = [
        (&[Read, Write], 2),
        (&[Write, Write], 2),
        (&[ReadAndPut, WriteAndLook], 2),
        (&[Read, Read, Write], 1),
        (&[Read, Write, Write], 1),
        (&[WriteBefore, Write], 2),
    ];
    let mut caps = Caps::weakest();
    caps.put_order = PutOrder::AllTargets;
    for (roles, n) in JOBS {
        let start = Instant::now();
        let report = explorer(roles).caps(caps).run(job(subject, roles, n, Step::Right));
        println!("{subject:?} {roles:?} x{n}: {report}, {:.2} s", start.elapsed().as_secs_f64());
        report.expect_exhausted();
    }
}

/// Each step done wrong is found; the run that shows it can be run again.
fn catch_mutations(subject: Subject) {
    for mutation in mutations().filter(|mutation| mutation.subject == subject && mutation.quick) {
        let start = Instant::now();
        let program = job(subject, mutation.roles, mutation.rounds, mutation.step);
        let report = explorer(mutation.roles).state_limit(500_000).run(&program);
        let found = report.violation().unwrap_or_else(|| panic!("{mutation:?} passed: {report}"));
        println!(
            "{:?}: {} in {} moves, {} states, {:.2} s",
            mutation.step,
            found.what,
            found.moves,
            report.states,
            start.elapsed().as_secs_f64()
        );
        let (again, timeline) = explorer(mutation.roles).replay(&found.schedule, &program);
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{mutation:?}");
    }
}

/// Those that take long to go through all orders for are found at random.
#[test]
fn large_mutations_are_caught() {
    for mutation in mutations().filter(|mutation| !mutation.quick) {
        let program = job(mutation.subject, mutation.roles, mutation.rounds, mutation.step);
        let sample = explorer(mutation.roles).sample(1, 200_000, program);
        let failure = sample.failure.as_ref().unwrap_or_else(|| panic!("{mutation:?} passed: {sample}"));
        println!("{mutation:?}: {failure:?}");
    }
}

/// The explorer does at once what nobody else notices. Without that the lock's words end in the same ways.
fn compare_with_the_unreduced(subject: Subject) {
    let roles: [&[Role]; 4] = [&[Read, Write], &[Write, Write], &[WriteBefore, Read], &[ReadReleaseDropped, Write]];
    for roles in roles {
        let ends = |explorer: Explorer<'static>| {
            let ends = Rc::new(RefCell::new(BTreeSet::new()));
            let noted = ends.clone();
            let explorer = explorer.at_end("noted", move |view| {
                let words = view.words().map(|(addr, value)| (addr.rank, addr.region.index, addr.offset, value));
                noted.borrow_mut().insert(words.collect::<Vec<_>>());
                true
            });
            let report = explorer.run(job(subject, roles, 1, Step::Right));
            report.expect_exhausted();
            (ends.take(), report.states)
        };
        let ((reduced, fewer), (whole, more)) = (ends(explorer(roles)), ends(explorer(roles).unreduced()));
        assert_eq!(reduced, whole, "{roles:?}");
        println!("{roles:?}: {} ends, {fewer} states instead of {more}", whole.len());
    }
}

/// More ranks and rounds than can be exhausted. Repeat a failure by its seed.
fn sample(subject: Subject) {
    const RUNS: u64 = 2_000;
    let cases: [(&[Role], usize); 10] = [
        (&[Read, Read, Write, Write], 2),
        (&[Read, Write, Write, Write], 2),
        (&[Read, Read, Read, Write], 2),
        (&[Read, Read, Read, Write, Write], 2),
        (&[ReadBefore, ReadBefore, Write, Write], 3),
        (&[Read, Read, WriteBefore, WriteBefore], 3),
        (&[ReadBefore, ReadBefore, ReadBefore, WriteBefore, WriteBefore, WriteBefore], 3),
        (&[ReadBefore, TryRead, WriteBefore, TryWrite, Read, Write], 3),
        (&[ReadDropped, ReadReleaseDropped, WriteReleaseDropped, WriteDropped, Write], 3),
        (&[ReadDropped, WriteDropped, ReadBefore, WriteBefore, Read, Write], 3),
    ];
    for (roles, n) in cases {
        let start = Instant::now();
        let sample = explorer(roles).sample(1, RUNS, job(subject, roles, n, Step::Right));
        assert!(sample.failure.is_none(), "{roles:?} x {n}: {sample}");
        println!("{roles:?} x {n}: {sample}, {:.2} s", start.elapsed().as_secs_f64());
    }
}
