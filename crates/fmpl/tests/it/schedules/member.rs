//! A member of a job that executes the steps of a program.

use super::INDICES;
use crate::harness::{pattern, read};
use fmpl::{Buffer, Communicator, Op, Received};
use rdma_fabric::join::join_all;
use std::{collections::HashMap, future::Future, pin::Pin, time::Duration};

/// The number of receives from one sender that are posted at once.
pub(super) const AT_ONCE: usize = 4;

/// A message from one rank to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) index: usize,
    pub(super) bytes: usize,
    /// Whether it is sent by `isend`.
    pub(super) later: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Messages of one pair, and how they are received: how many receives are posted at once, which
    /// of them take any index (as bits; if the highest bit is set, all of them, matched by the
    /// sender), and whether they are awaited together.
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
pub(super) type Counts = HashMap<(usize, usize), usize>;

pub(super) fn count(counts: &mut Counts, peer: usize, index: usize) -> usize {
    let next = counts.entry((peer, index)).or_default();
    *next += 1;
    *next - 1
}

/// Returns the bytes of the n-th message of one sender, receiver and index.
fn content(from: usize, to: usize, index: usize, n: usize, bytes: usize) -> Vec<u8> {
    pattern(from + 5 * to + 23 * index + 71 * n, bytes)
}

pub(super) struct Member<'a> {
    pub(super) world: &'a Communicator,
    pub(super) steps: &'a [Step],
    pub(super) buffers: Vec<Buffer<u8>>,
    pub(super) sent: Counts,
    pub(super) received: Counts,
}

impl Member<'_> {
    pub(super) async fn send(&mut self, to: usize, messages: &[Message]) -> fmpl::Result<()> {
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
    pub(super) fn missing(&self, from: usize) -> Vec<usize> {
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
    pub(super) async fn receive(
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
                // All of them or none: which of two receives takes a message is open otherwise.
                let direct = any >> (2 * AT_ONCE - 1) == 1;
                if direct || any >> n & 1 == 1 || named.contains(&index) {
                    buffer = &self.buffers[AT_ONCE + of_any.len()];
                    wait = if direct {
                        let receiving = world.irecv_any_index_direct(buffer, from).await?;
                        Box::pin(async move { Ok((receiving.wait().await?, buffer)) })
                    } else {
                        let receiving = world.irecv_any_index(buffer, from).await?;
                        Box::pin(async move { Ok((receiving.wait().await?, buffer)) })
                    };
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

    pub(super) async fn step(&mut self, step: &Step) -> fmpl::Result<()> {
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
