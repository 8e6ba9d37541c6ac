//! Exhaustive checks under loom, within the bounds that each test states: exclusion, visibility,
//! absence of deadlocks, no traces left behind.
//!
//! The fabric runs on a special provider, `loom-fabric`; the protocols are the same code as
//! elsewhere.

mod dropping;
mod fast_paths;
mod harness;
mod holder_limit;
mod jobs;
mod multicasts;
mod mutants;
mod nodes;
mod without_queues;

use checks::lock::mutants::{QueuedMutant, assert_idle, queued_mutant};
use loom_fabric::{Config, DataCell, RankHandle, run};
use rdma_fabric::{Fabric, Rank, Region, RemoteWord, Time};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{LockKind, RpLock},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

/// The role of a rank, which it plays once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoomRole {
    Read,
    Write,
    TryRead,
    TryWrite,
    /// With a deadline that passes when the clock moves.
    ReadBefore,
    /// With a deadline that passes when the clock moves.
    WriteBefore,
    /// Moves the clocks of all ranks.
    Clock,
    /// Drops the acquisition if it has not completed after this number of polls.
    ReadFor(u8),
    WriteFor(u8),
    TryReadFor(u8),
    TryWriteFor(u8),
    /// Drops the release if it has not completed after this number of polls; after 0 polls, drops
    /// the guard.
    ReadReleaseFor(u8),
    WriteReleaseFor(u8),
}
use LoomRole::*;

/// Polls a future up to `times` times and then drops it.
async fn polled<T>(times: u8, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(out) => Poll::Ready(Some(out)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

const HOME: Rank = Rank::new(0);
const DEADLINE: Time = Time::from_picos(1);

/// Converts a timeout to `None`: it is not an error here.
fn in_time<G>(outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TimedOut) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Takes the lock as `role` requires, reads or changes the data, and releases the lock. Returns
/// whether it took the lock.
async fn use_lock<L: RmaLock>(
    lock: &L,
    word: &RemoteWord<u64>,
    seen_by_loom: &Fabric,
    data: &DataCell,
    role: LoomRole,
) -> Result<bool, LockError> {
    let fabric = lock.fabric();
    match role {
        Clock => {
            for rank in 0..fabric.ranks() as u32 {
                RankHandle::of(seen_by_loom).job().advance(Rank::new(rank), DEADLINE.as_picos());
            }
            return Ok(true);
        }
        Write | TryWrite | WriteBefore | WriteFor(_) | TryWriteFor(_) | WriteReleaseFor(_) => {
            let guard = match role {
                Write | WriteReleaseFor(_) => Some(lock.write().await?),
                TryWrite => lock.try_write().await?,
                WriteFor(polls) => polled(polls, lock.write()).await.transpose()?,
                TryWriteFor(polls) => polled(polls, lock.try_write()).await.transpose()?.flatten(),
                _ => in_time(lock.write_before(DEADLINE).await)?,
            };
            let Some(guard) = guard else { return Ok(false) };
            let version = data.enter_write(seen_by_loom);
            fabric.put_word(word, version).await?;
            data.leave_write();
            match role {
                WriteReleaseFor(polls) => return Ok(polled(polls, guard.release()).await.transpose()?.is_some()),
                _ => guard.release().await?,
            }
        }
        Read | TryRead | ReadBefore | ReadFor(_) | TryReadFor(_) | ReadReleaseFor(_) => {
            let guard = match role {
                Read | ReadReleaseFor(_) => Some(lock.read().await?),
                TryRead => lock.try_read().await?,
                ReadFor(polls) => polled(polls, lock.read()).await.transpose()?,
                TryReadFor(polls) => polled(polls, lock.try_read()).await.transpose()?.flatten(),
                _ => in_time(lock.read_before(DEADLINE).await)?,
            };
            let Some(guard) = guard else { return Ok(false) };
            let version = data.enter_read();
            assert_eq!(fabric.get_word(word).await?, version, "visibility: a reader missed a released write");
            data.leave_read();
            match role {
                ReadReleaseFor(polls) => return Ok(polled(polls, guard.release()).await.transpose()?.is_some()),
                _ => guard.release().await?,
            }
        }
    }
    Ok(true)
}

/// The values that must outlive the last rank: the lock and the data's region; and whether the rank
/// took the lock.
type Kept<L> = (L, Region, bool);

/// Plays one rank's part.
async fn rounds<L: RmaLock>(
    fabric: Fabric,
    seen_by_loom: Fabric,
    data: Rc<DataCell>,
    role: LoomRole,
    rounds: usize,
) -> Result<Kept<L>, LockError> {
    let lock = L::symmetric(&fabric, HOME).await?;
    let shared = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(shared.at(HOME, 0))?;
    let mut had = true;
    for _ in 0..rounds {
        had &= use_lock(&lock, &word, &seen_by_loom, &data, role).await?;
    }
    Ok((lock, shared, had))
}

/// Events of the executions, to verify that a check covers the claimed cases.
#[derive(Debug, Default)]
struct Seen {
    most_readers: AtomicUsize,
    refused: AtomicUsize,
    /// The number of refusals of rank 0.
    refused_first: AtomicUsize,
    had: AtomicUsize,
}

/// Returns a job of a lock with queues to check.
fn model_of<L: RmaLock>(
    config: Config,
    roles: Vec<LoomRole>,
    n: usize,
    seen: Arc<Seen>,
) -> impl Fn() + Send + Sync + 'static + use<L> {
    model_with::<L>(config, roles, n, seen, |job| assert_idle(job.residue()))
}

/// Returns a job of `L` to check; `at_end` checks its memory.
fn model_with<L: RmaLock>(
    config: Config,
    roles: Vec<LoomRole>,
    n: usize,
    seen: Arc<Seen>,
    at_end: fn(&loom_fabric::Job),
) -> impl Fn() + Send + Sync + 'static + use<L> {
    let roles = Arc::new(roles);
    move || {
        let roles = roles.clone();
        let data = Rc::new(DataCell::new());
        let (shared, seen_by_rank) = (data.clone(), seen.clone());
        let job = run(config, move |fabric| {
            let (data, role, seen) = (shared.clone(), roles[fabric.rank().index()], seen_by_rank.clone());
            let first = fabric.rank() == HOME;
            async move {
                let kept = rounds::<L>(fabric.clone(), fabric, data, role, n).await.expect("no error is possible");
                if first && !kept.2 {
                    seen.refused_first.fetch_add(1, Relaxed);
                }
                if kept.2 { &seen.had } else { &seen.refused }.fetch_add(1, Relaxed);
                kept
            }
        });
        at_end(&job);
        seen.most_readers.fetch_max(data.most_readers(), Relaxed);
    }
}

/// Returns a job of the reader-preference lock with one mutated step.
fn broken(
    mutant: Option<QueuedMutant>,
    roles: &'static [LoomRole],
    n: usize,
    config: Config,
) -> impl Fn() + Send + Sync + 'static {
    let wrap = move |fabric: Fabric, _| match mutant {
        None => fabric,
        Some(mutant) => queued_mutant(fabric, LockKind::ReaderPreference, mutant),
    };
    broken_of::<RpLock>(wrap, roles, n, config, |job| assert_idle(job.residue()))
}

/// Returns a job of `L` over fabrics with mutated steps, which `wrap` inserts; `at_end` checks its
/// memory.
fn broken_of<L: RmaLock>(
    wrap: impl Fn(Fabric, LoomRole) -> Fabric + Copy + Send + Sync + 'static,
    roles: &'static [LoomRole],
    n: usize,
    config: Config,
    at_end: fn(&loom_fabric::Job),
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let job = run(config, move |fabric| {
            let (data, role) = (data.clone(), roles[fabric.rank().index()]);
            let mutant = wrap(fabric.clone(), role);
            async move { rounds::<L>(mutant, fabric, data, role, n).await.expect("an error") }
        });
        at_end(&job);
    }
}
