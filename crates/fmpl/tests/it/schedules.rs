//! Random programs against a sequential oracle.
//!
//! A program is a list of steps, which each rank executes in order. A step's sends need only the
//! receives of the same step, so a program ends even with little buffering. Which of several
//! messages a receive of any index or sender takes is unspecified, but the messages of one sender,
//! receiver and index arrive in the order sent, exactly once, with the correct bytes.

use crate::harness::{machines, pattern, read};
use fmpl::{Buffer, Communicator, Fmpl, Op, Options, Received};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rdma_fabric::{Fabric, ProgramResult, join::join_all};
use std::{collections::HashMap, future::Future, pin::Pin, time::Duration};
use tofu2_sim::{shm::Threads, virt::Job};

const INDICES: usize = 3;
const LONGEST: usize = 5_000;
/// The number of receives from one sender that are posted at once.
const AT_ONCE: usize = 4;

/// A message from one rank to another.
#[derive(Clone, Copy, Debug)]
struct Message {
    index: usize,
    bytes: usize,
    /// Whether it is sent by `isend`.
    later: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// Messages of one pair, and how they are received: how many receives are posted at once, which
    /// of them take any index (as bits), and whether they are awaited together.
    Pair {
        from: usize,
        to: usize,
        messages: Vec<Message>,
        receives: Vec<(usize, u8, bool)>,
    },
    /// Messages to a rank that receives from any sender.
    Anyone {
        to: usize,
        index: usize,
        from: Vec<usize>,
    },
    Barrier,
    Broadcast {
        root: usize,
        bytes: usize,
    },
    Sum {
        elements: usize,
    },
    /// A rank sleeps for this number of microseconds.
    Sleep {
        rank: usize,
        micros: u64,
    },
}

/// The numbers of messages that one rank has sent or received, by peer and index.
type Counts = HashMap<(usize, usize), usize>;

fn count(counts: &mut Counts, peer: usize, index: usize) -> usize {
    let next = counts.entry((peer, index)).or_default();
    *next += 1;
    *next - 1
}

/// Returns the bytes of the n-th message of one sender, receiver and index.
fn content(from: usize, to: usize, index: usize, n: usize, bytes: usize) -> Vec<u8> {
    pattern(from + 5 * to + 23 * index + 71 * n, bytes)
}

struct Member<'a> {
    world: &'a Communicator,
    steps: &'a [Step],
    buffers: Vec<Buffer<u8>>,
    sent: Counts,
    received: Counts,
}

impl Member<'_> {
    async fn send(&mut self, to: usize, messages: &[Message]) -> fmpl::Result<()> {
        let (world, me) = (self.world, self.world.me());
        let mut under_way = HashMap::new();
        for Message { index, bytes, later } in messages.iter().copied() {
            let body = content(me, to, index, count(&mut self.sent, to, index), bytes);
            if let Some((sending, _)) = under_way.remove(&index) {
                fmpl::Sending::wait(sending).await?;
            }
            if later {
                let own = world.buffer::<u8>(bytes.max(1))?;
                world.fabric().write(&own.slice(0..bytes)?, &body)?;
                under_way.insert(index, (world.isend(&own.slice(0..bytes)?, to, index).await?, own));
            } else {
                world.send(&body, to, index).await?;
            }
        }
        for (sending, _own) in under_way.into_values() {
            sending.wait().await?;
        }
        Ok(())
    }

    /// Returns the indices of the messages from a peer that were not received, in the order sent.
    fn missing(&self, from: usize) -> Vec<usize> {
        let me = self.world.me();
        let all = self.steps.iter().filter_map(|step| match step {
            Step::Pair { from: sender, to, messages, .. } if (*sender, *to) == (from, me) => Some(messages),
            _ => None,
        });
        let mut seen = Counts::new();
        let is_missing = |index: &usize| {
            count(&mut seen, from, *index) >= self.received.get(&(from, *index)).copied().unwrap_or_default()
        };
        all.flatten().map(|message| message.index).filter(is_missing).collect()
    }

    /// Receives `messages` messages of one sender. Those sent with `isend` complete only when a
    /// receive of any index that takes them is awaited, so all are awaited `together`.
    async fn receive(
        &mut self,
        from: usize,
        messages: usize,
        receives: &[(usize, u8, bool)],
        later: bool,
    ) -> fmpl::Result<()> {
        let world = self.world;
        let (mut left, mut turns) = (messages, receives.iter().cycle());
        while left > 0 {
            let (at_once, any, together) = *turns.next().expect("a cycle");
            let mut named = Vec::new();
            let (mut waits, mut of_any): (Vec<Wait<'_>>, Vec<Wait<'_>>) = Default::default();
            for (n, index) in self.missing(from).into_iter().take(at_once.min(left)).enumerate() {
                let (buffer, wait): (_, Wait<'_>);
                if any >> n & 1 == 1 || named.contains(&index) {
                    buffer = &self.buffers[AT_ONCE + of_any.len()];
                    let receiving = world.irecv_any_index(buffer, from).await?;
                    wait = Box::pin(async move { Ok((receiving.wait().await?, buffer)) });
                    of_any.push(wait);
                } else {
                    buffer = &self.buffers[waits.len()];
                    let receiving = world.irecv(buffer, from, index).await?;
                    wait = Box::pin(async move { Ok((receiving.wait().await?, buffer)) });
                    named.push(index);
                    waits.push(wait);
                }
            }
            // An index is in use until its receive has been waited for.
            waits.append(&mut of_any);
            left -= waits.len();
            let mut done = Vec::new();
            if together || later {
                done = join_all(waits).await;
            } else {
                for wait in waits {
                    done.push(wait.await);
                }
            }
            for received in done {
                let (received, buffer) = received?;
                check(world, &mut self.received, received, buffer, INDICES)?;
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> fmpl::Result<()> {
        let (world, me) = (self.world, self.world.me());
        match step {
            Step::Pair { from, to, messages, .. } if *from == me => self.send(*to, messages).await,
            Step::Pair { from, to, messages, receives } if *to == me => {
                let later = messages.iter().any(|message| message.later);
                self.receive(*from, messages.len(), receives, later).await
            }
            Step::Anyone { to, index, from } => {
                for from in from {
                    if *to == me {
                        let received = world.recv_any(&self.buffers[0], *index).await?;
                        let received = Received { index: INDICES + received.index, ..received };
                        check(world, &mut self.received, received, &self.buffers[0], 0)?;
                    } else if *from == me {
                        let n = count(&mut self.sent, *to, INDICES + index);
                        world.send_any(&content(me, *to, INDICES + index, n, 40 * n), *to, *index).await?;
                    }
                }
                world.barrier().await
            }
            Step::Barrier => world.barrier().await,
            Step::Broadcast { root, bytes } => {
                let span = self.buffers[0].slice(0..*bytes)?;
                world.fabric().write(&span, &pattern(me, *bytes))?;
                world.broadcast(&span, *root).await?;
                assert!(read(world, &span, *bytes)? == pattern(*root, *bytes), "a broadcast");
                Ok(())
            }
            Step::Sum { elements } => {
                let span = self.buffers[0].part_as::<i32>(0, *elements)?;
                world.fabric().write(&*span, &vec![me as i32 + 1; *elements])?;
                world.allreduce(&*span, Op::Sum).await?;
                let sum = (1..=world.len() as i32).sum::<i32>();
                assert_eq!(read(world, &*span, *elements)?, vec![sum; *elements], "a sum");
                Ok(())
            }
            Step::Sleep { rank, micros } if *rank == me => {
                world.fabric().sleep(Duration::from_micros(*micros)).await;
                Ok(())
            }
            Step::Pair { .. } | Step::Sleep { .. } => Ok(()),
        }
    }
}

type Wait<'a> = Pin<Box<dyn Future<Output = fmpl::Result<(Received, &'a Buffer<u8>)>> + 'a>>;

/// Checks that a message is the next one of its sender and index.
fn check(
    world: &Communicator,
    counts: &mut Counts,
    received: Received,
    buffer: &Buffer<u8>,
    below: usize,
) -> fmpl::Result<()> {
    let Received { from, index, bytes } = received;
    assert!(below == 0 || index < below, "{received:?}");
    let n = count(counts, from, index);
    assert!(read(world, buffer, bytes)? == content(from, world.me(), index, n, bytes), "number {n} of {received:?}");
    Ok(())
}

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
#[ignore = "a minute"]
fn more_programs_receive_what_was_sent_in_order() {
    programs(1_500);
}
