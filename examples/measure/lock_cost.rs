//! What a pair of lock and unlock costs over shared memory: `cargo example lock_cost --release`.
//!
//! First a remote idle lock, its home asleep outside the fabric; the fastest of many batches, three million pairs in all. Then sixteen
//! ranks that all want it exclusively, beside as many threads and a mutex of the standard library. The same for the other locks.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{BackOffLock, Excludes, FairLock, Guard, Lock, Locked, PackedLock, RmaLock, RpLock, WritersFirstLock};
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
use tofu2_sim::shm::Threads;

const HOME: Rank = Rank::new(1);
const PAIRS: u32 = 10_000;
const BATCHES: usize = 300;
const CROWD: usize = 16;
const CROWD_PAIRS: u32 = 20_000;

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pair {
    /// The machine's two read-modify-writes, on a word of rank 0: what no reader can fall below.
    Limit,
    /// The same with four plain stores to another line, as many as a reader publishes.
    LimitPublished,
    Shared,
    Exclusive,
    /// Without `release`.
    Dropped,
    /// Exclusive, and a put of 8 bytes between.
    Put,
    /// Memory under the lock: exclusive, and a store through a reference between.
    Stored,
    /// The same with a put of 8 bytes by the guard.
    Copied,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Flat,
    Packed,
    WritersFirst,
    Fair,
    BackOff,
}

const ALL: [Which; 5] = [Which::Flat, Which::Packed, Which::WritersFirst, Which::Fair, Which::BackOff];

/// A word with a cache line to itself.
#[repr(align(128))]
struct Line(AtomicU64);

/// Rank 0 repeats; nanoseconds per pair in the fastest batch, which other work
/// of the machine is least likely to have disturbed.
async fn alone(fabric: Fabric, which: Which, pair: Pair, asleep: Arc<Barrier>) -> ProgramResult<f64> {
    match which {
        Which::Flat => repeat::<RpLock>(fabric, pair, asleep).await,
        Which::Packed => repeat::<PackedLock>(fabric, pair, asleep).await,
        Which::WritersFirst => repeat::<WritersFirstLock>(fabric, pair, asleep).await,
        Which::Fair => repeat::<FairLock>(fabric, pair, asleep).await,
        Which::BackOff => repeat::<BackOffLock>(fabric, pair, asleep).await,
    }
}

async fn repeat<L: Excludes>(fabric: Fabric, pair: Pair, asleep: Arc<Barrier>) -> ProgramResult<f64> {
    let mut world = Group::world(&fabric).await?;
    let lock = L::symmetric(&fabric, HOME).await?;
    let locked = Locked::<u64, L>::symmetric(&fabric, HOME, 1).await?;
    let window = fabric.alloc_symmetric(8).await?;
    let far = fabric.remote_word::<u64>(window.at(HOME, 0))?;
    world.barrier().await?;
    let (word, published) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
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

/// All ranks lock exclusively; the time from the barrier before to the barrier after.
async fn crowd(fabric: Fabric, which: Which) -> ProgramResult<Duration> {
    match which {
        Which::Flat => contend::<RpLock>(fabric).await,
        Which::Packed => contend::<PackedLock>(fabric).await,
        Which::WritersFirst => contend::<WritersFirstLock>(fabric).await,
        Which::Fair => contend::<FairLock>(fabric).await,
        Which::BackOff => contend::<BackOffLock>(fabric).await,
    }
}

async fn contend<L: RmaLock>(fabric: Fabric) -> ProgramResult<Duration> {
    let mut world = Group::world(&fabric).await?;
    let lock = L::symmetric(&fabric, HOME).await?;
    world.barrier().await?;
    let begun = Instant::now();
    for _ in 0..CROWD_PAIRS {
        lock.write().await?.release().await?;
    }
    world.barrier().await?;
    Ok(begun.elapsed())
}

fn mutex_crowd() -> Duration {
    let (mutex, together) = (Mutex::new(0u64), Barrier::new(CROWD));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWD)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    let begun = Instant::now();
                    for _ in 0..CROWD_PAIRS {
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

fn main() -> Result<(), tofu2_sim::JobError> {
    let alone = |which, pair| -> Result<f64, tofu2_sim::JobError> {
        let asleep = Arc::new(Barrier::new(2));
        Ok(Threads::new(2).run(&async |fabric| alone(fabric, which, pair, asleep.clone()).await)?[0])
    };
    let of = format!("ns, fastest of {BATCHES} batches of {PAIRS}");
    for pair in [Pair::Limit, Pair::LimitPublished] {
        println!("{pair:?} pair: {:.2} {of}", alone(Which::Flat, pair)?);
    }
    for which in ALL {
        for pair in [Pair::Shared, Pair::Exclusive, Pair::Dropped, Pair::Put, Pair::Stored, Pair::Copied] {
            println!("{}, {pair:?} pair, alone: {:.2} {of}", name(which), alone(which, pair)?);
        }
    }
    let each = |time: Duration| time.as_nanos() as f64 / (CROWD as f64 * f64::from(CROWD_PAIRS));
    for _ in 0..3 {
        for which in ALL {
            let lock = Threads::new(CROWD)
                .run(&async |fabric| crowd(fabric, which).await)?
                .into_iter()
                .max()
                .unwrap_or_default();
            println!("{}, {CROWD} ranks, exclusive: {:.0} ns a pair", name(which), each(lock));
        }
        println!("mutex, {CROWD} threads: {:.0} ns", each(mutex_crowd()));
    }
    Ok(())
}

fn name(which: Which) -> &'static str {
    match which {
        Which::Flat => <RpLock as Lock>::NAME,
        Which::Packed => <PackedLock as Lock>::NAME,
        Which::WritersFirst => <WritersFirstLock as Lock>::NAME,
        Which::Fair => <FairLock as Lock>::NAME,
        Which::BackOff => <BackOffLock as Lock>::NAME,
    }
}
