//! Random programs against a sequential oracle.
//!
//! A program is a list of steps, which each rank executes in order. A step's sends need only the
//! receives of the same step, so a program ends even with little buffering. Which of several
//! messages a receive of any index or sender takes is unspecified, but the messages of one sender,
//! receiver and index arrive in the order sent, exactly once, with the correct bytes.

mod member;

use crate::harness::machines;
use fmpl::{Fmpl, Options};
use member::{AT_ONCE, Counts, Member, Message, Step, count};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;
use tofu2_sim::{shm::Threads, virt::Job};

const INDICES: usize = 3;

const LONGEST: usize = 5_000;

/// Runs a rank's part; returns the number of messages of each sender and index that it has
/// received.
async fn run(fabric: Fabric, steps: &[Step], options: Options) -> ProgramResult<Vec<((usize, usize), usize)>> {
    let fmpl = Fmpl::init_with(&fabric, options.indices(INDICES)).await?;
    let world = fmpl.world();
    let buffers = (0..2 * AT_ONCE).map(|_| world.buffer(LONGEST)).collect::<fmpl::Result<_>>()?;
    let mut member = Member { world, steps, buffers, sent: Counts::new(), received: Counts::new() };
    for step in steps {
        member.step(step).await?;
    }
    let mut received: Vec<_> = member.received.into_iter().collect();
    received.sort_unstable();
    fmpl.finalize().await?;
    Ok(received)
}

/// Returns the messages that each rank must receive.
fn oracle(ranks: usize, steps: &[Step]) -> Vec<Vec<((usize, usize), usize)>> {
    let mut received = vec![Counts::new(); ranks];
    for step in steps {
        match step {
            Step::Pair { from, to, messages, .. } => {
                for message in messages {
                    count(&mut received[*to], *from, message.index);
                }
            }
            Step::Anyone { to, index, from } => {
                for from in from {
                    count(&mut received[*to], *from, INDICES + index);
                }
            }
            _ => {}
        }
    }
    let sorted = |counts: Counts| {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        counts
    };
    received.into_iter().map(sorted).collect()
}

fn message() -> impl Strategy<Value = Message> {
    let bytes = prop::sample::select(vec![0usize, 8, 56, 300, LONGEST]);
    (0..INDICES, bytes, prop::bool::weighted(0.3)).prop_map(|(index, bytes, later)| Message { index, bytes, later })
}

fn step(ranks: usize) -> impl Strategy<Value = Step> {
    let other = move |rank: usize, by: usize| (rank + 1 + by % (ranks - 1)) % ranks;
    let receives = prop::collection::vec((1..=AT_ONCE, any::<u8>(), any::<bool>()), 1..4);
    let messages = prop::collection::vec(message(), 1..8);
    prop_oneof![
        6 => (0..ranks, 0..ranks, messages, receives).prop_map(move |(from, by, messages, receives)| {
            Step::Pair { from, to: other(from, by), messages, receives }
        }),
        2 => (0..ranks, 0..2usize, prop::collection::vec(0..ranks, 1..6)).prop_map(move |(to, index, from)| {
            Step::Anyone { to, index, from: from.into_iter().map(|by| other(to, by)).collect() }
        }),
        1 => Just(Step::Barrier),
        1 => (0..ranks, 0..LONGEST).prop_map(|(root, bytes)| Step::Broadcast { root, bytes }),
        1 => (0..600usize).prop_map(|elements| Step::Sum { elements }),
        2 => (0..ranks, 0..60u64).prop_map(|(rank, micros)| Step::Sleep { rank, micros }),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let plain = Options::default();
    let spool = |bytes, micros| Options::default().spool(bytes, Duration::from_micros(micros));
    let growing = |bytes, micros| spool(bytes, 0).growing(Duration::from_micros(micros));
    prop::sample::select(vec![
        plain,
        spool(1 << 16, 0),
        spool(1 << 16, 10),
        spool(512, 0),
        spool(6_000, 3),
        growing(0, 0),
        growing(512, 20),
    ])
}

/// Runs this number of programs on all fabrics; prints the failing one with the seed of its
/// latencies.
fn programs(cases: u32) {
    let steps = (2..=4usize).prop_flat_map(|ranks| (Just(ranks), prop::collection::vec(step(ranks), 1..16)));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let failed = |fabric: &str, error: &dyn std::fmt::Display| TestCaseError::fail(format!("{fabric}: {error}"));
    let outcome = TestRunner::new(config).run(&(steps, options(), any::<u64>()), |((ranks, steps), options, seed)| {
        let program = async |fabric: Fabric| run(fabric, &steps, options.clone()).await;
        let expected = oracle(ranks, &steps);
        let real = Threads::new(ranks).run(&program).map_err(|error| failed("threads", &error))?;
        prop_assert_eq!(&real, &expected, "on threads");
        for (name, machine) in machines() {
            let job = Job::new(&machine, ranks).seed(seed).jitter(Duration::from_micros(30)).shuffle_ties(true);
            let outs = job.run(&program).map_err(|error| failed(name, &error))?.outs;
            prop_assert_eq!(&outs, &expected, "{}", name);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn programs_receive_what_was_sent_in_order() {
    programs(60);
}

#[test]
#[ignore = "long: weekly"]
fn more_programs_receive_what_was_sent_in_order() {
    programs(1_500);
}
