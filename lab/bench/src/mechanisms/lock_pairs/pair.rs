//! Pairs of an acquisition and a release, repeated by one rank or by all.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Excludes, Guard, Locked, Policy, RmaLock, RwLock};
use std::{
    hint::black_box,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Release},
        },
    },
    time::{Duration, Instant},
};
use tofu2_sim::{JobError, shm::Threads};

const HOME: Rank = Rank::new(1);
pub(super) const PAIRS: u32 = 10_000;
pub(super) const CONTENDERS: usize = 16;
pub(super) const CONTENDED_PAIRS: u32 = 20_000;

/// The pair of calls that is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pair {
    /// Two read-modify-write instructions on a word of rank 0: no reader can be faster.
    Limit,
    /// [`Pair::Limit`] with four plain stores to another line, as many as a reader publishes.
    LimitPublished,
    Shared,
    Exclusive,
    /// Shared, without `release`.
    Dropped,
    /// Exclusive, with an 8-byte put in between.
    Put,
    /// Memory under the lock: exclusive, with a store through a reference in between.
    Stored,
    /// Memory under the lock: exclusive, with an 8-byte put by the guard in between.
    Copied,
}

/// A lock and its measurements.
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// The nanoseconds of a pair by rank 0 alone.
    pub(super) alone: fn(Pair, u32) -> Result<f64, JobError>,
    /// The time between the barriers before and after, with ranks that all lock exclusively.
    pub(super) contended: fn(u32) -> Result<Duration, JobError>,
}

impl Measured {
    pub(super) fn of<L: Excludes + 'static>() -> Self {
        Measured {
            name: L::NAME,
            alone: |pair, batches| {
                let asleep = Arc::new(Barrier::new(2));
                Ok(Threads::new(2).run(&async |fabric| alone::<L>(fabric, pair, batches, asleep.clone()).await)?[0])
            },
            contended: |pairs| {
                let times = Threads::new(CONTENDERS).run(&async |fabric| contend::<L>(fabric, pairs).await)?;
                Ok(times.into_iter().max().unwrap_or_default())
            },
        }
    }
}

/// A word with a cache line to itself.
#[repr(align(128))]
struct Line(AtomicU64);

/// Repeats a pair on rank 0. Returns the nanoseconds of one in the fastest batch, which is least
/// affected by other work on the machine.
async fn alone<L: Excludes>(fabric: Fabric, pair: Pair, batches: u32, asleep: Arc<Barrier>) -> ProgramResult<f64> {
    let mut world = Group::world(&fabric).await?;
    let lock = L::symmetric(&fabric, HOME).await?;
    let locked = Locked::<u64, L>::symmetric(&fabric, HOME, 1).await?;
    let window = fabric.alloc_symmetric(8).await?;
    let far = fabric.remote_word::<u64>(window.at(HOME, 0))?;
    world.barrier().await?;
    let (word, published) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let mut least = f64::INFINITY;
    for _ in 0..batches {
        if fabric.rank() == HOME {
            break;
        }
        let begun = Instant::now();
        match pair {
            Pair::Limit => {
                for _ in 0..PAIRS {
                    black_box(word.0.fetch_add(4, AcqRel));
                    black_box(word.0.fetch_add(4u64.wrapping_neg(), AcqRel));
                }
            }
            Pair::LimitPublished => {
                for _ in 0..PAIRS {
                    published.0.store(1, Release);
                    black_box(word.0.fetch_add(4, AcqRel));
                    published.0.store(2, Release);
                    published.0.store(3, Release);
                    black_box(word.0.fetch_add(4u64.wrapping_neg(), AcqRel));
                    published.0.store(0, Release);
                }
            }
            Pair::Shared => {
                for _ in 0..PAIRS {
                    lock.read().await?.release().await?;
                }
            }
            Pair::Exclusive => {
                for _ in 0..PAIRS {
                    lock.write().await?.release().await?;
                }
            }
            Pair::Put => {
                for turn in 0..PAIRS {
                    let guard = lock.write().await?;
                    fabric.put_word(&far, u64::from(turn)).await?;
                    guard.release().await?;
                }
            }
            Pair::Stored => {
                for turn in 0..PAIRS {
                    let mut guard = locked.write().await?;
                    guard.part_mut(HOME)?[0] = u64::from(turn);
                    guard.release().await?;
                }
            }
            Pair::Copied => {
                for turn in 0..PAIRS {
                    let mut guard = locked.write().await?;
                    guard.put(HOME, 0, [u64::from(turn)]).await?;
                    guard.release().await?;
                }
            }
            Pair::Dropped => {
                for _ in 0..PAIRS {
                    drop(lock.read().await?);
                }
            }
        }
        least = least.min(begun.elapsed().as_nanos() as f64 / f64::from(PAIRS));
    }
    asleep.wait();
    world.barrier().await?;
    Ok(least)
}

/// Repeats a shared or an exclusive pair of a [`RwLock`] on rank 0. Returns the nanoseconds of one
/// in the fastest batch.
pub(super) async fn by_policy(
    fabric: Fabric,
    policy: Policy,
    pair: Pair,
    batches: u32,
    asleep: Arc<Barrier>,
) -> ProgramResult<f64> {
    let mut world = Group::world(&fabric).await?;
    let lock = RwLock::with_policy(&fabric, HOME, policy).await?;
    world.barrier().await?;
    let mut least = f64::INFINITY;
    for _ in 0..if fabric.rank() == HOME { 0 } else { batches } {
        let begun = Instant::now();
        if pair == Pair::Shared {
            for _ in 0..PAIRS {
                lock.read().await?.release().await?;
            }
        } else {
            for _ in 0..PAIRS {
                lock.write().await?.release().await?;
            }
        }
        least = least.min(begun.elapsed().as_nanos() as f64 / f64::from(PAIRS));
    }
    asleep.wait();
    world.barrier().await?;
    Ok(least)
}

/// Locks exclusively on all ranks. Returns the time from the barrier before to the barrier after.
async fn contend<L: RmaLock>(fabric: Fabric, pairs: u32) -> ProgramResult<Duration> {
    let mut world = Group::world(&fabric).await?;
    let lock = L::symmetric(&fabric, HOME).await?;
    world.barrier().await?;
    let begun = Instant::now();
    for _ in 0..pairs {
        lock.write().await?.release().await?;
    }
    world.barrier().await?;
    Ok(begun.elapsed())
}

pub(super) fn contended_mutex(pairs: u32) -> Duration {
    let (mutex, together) = (Mutex::new(0u64), Barrier::new(CONTENDERS));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONTENDERS)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    let begun = Instant::now();
                    for _ in 0..pairs {
                        *black_box(&mutex).lock().expect("nobody panics") += 1;
                    }
                    together.wait();
                    begun.elapsed()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("nobody panics")).max().unwrap_or_default()
    })
}
