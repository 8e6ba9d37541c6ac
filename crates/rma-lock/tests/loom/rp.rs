//! The reader-preference lock itself: exclusion, visibility, no deadlock, nothing left behind.
//!
//! Each case runs with puts delivered at once and with puts delivered as late as the contract allows.

use crate::mutant::assert_idle;
use loom_fabric::{Config, DataCell, Delivery, Seat, check, run};
use rdma_fabric::{Fabric, Rank, Region, RemoteWord, Time};
use rma_lock::{Guard, LockError, RmaLock, locks::RpLock};
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

/// What a rank does, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    Write,
    TryRead,
    TryWrite,
    /// Until the clock moves.
    ReadBefore,
    /// Until the clock moves.
    WriteBefore,
    /// Moves everybody's clock.
    Clock,
    /// Drops the acquisition if it is not over after so many polls.
    ReadFor(u8),
    WriteFor(u8),
    TryReadFor(u8),
    TryWriteFor(u8),
    /// Drops the release likewise; after none, the guard.
    ReadReleaseFor(u8),
    WriteReleaseFor(u8),
}
use Role::*;

/// Poll a future up to so many times and then drop it.
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

pub(crate) const HOME: Rank = Rank::new(0);
const DEADLINE: Time = Time::from_picos(1);

/// A deadline that came is no error here.
fn in_time<G>(outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TimedOut) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Take the lock as `role` says, look at the data or change it, let go. True if the lock was had.
async fn use_lock<L: RmaLock>(
    lock: &L,
    word: &RemoteWord<u64>,
    seen_by_loom: &Fabric,
    data: &DataCell,
    role: Role,
) -> Result<bool, LockError> {
    let fabric = lock.fabric();
    match role {
        Clock => {
            for rank in 0..fabric.ranks() as u32 {
                Seat::of(seen_by_loom).job().advance(Rank::new(rank), DEADLINE.as_picos());
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

/// What must outlive the last rank: the lock, the data's region; and whether the lock was had.
pub(crate) type Kept<L> = (L, Region, bool);

/// One rank's part.
pub(crate) async fn rounds<L: RmaLock>(
    fabric: Fabric,
    seen_by_loom: Fabric,
    data: Rc<DataCell>,
    role: Role,
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

/// What happened in some execution, to see that a check is about what it claims to be about.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) most_readers: AtomicUsize,
    refused: AtomicUsize,
    /// Of rank 0.
    pub(crate) refused_first: AtomicUsize,
    pub(crate) had: AtomicUsize,
}

fn model(roles: &'static [Role], n: usize, delivery: Delivery, seen: Arc<Seen>) -> impl Fn() + Send + Sync + 'static {
    model_of::<RpLock>(Config::new(roles.len(), delivery), roles.to_vec(), n, seen)
}

pub(crate) fn model_of<L: RmaLock>(
    config: Config,
    roles: Vec<Role>,
    n: usize,
    seen: Arc<Seen>,
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
        assert_idle(job.residue());
        seen.most_readers.fetch_max(data.most_readers(), Relaxed);
    }
}

/// Check `roles` under both deliveries; at least so many executions each.
fn check_roles(bound: Option<usize>, roles: &'static [Role], n: usize, at_least: usize) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    for delivery in [Delivery::AtPost, Delivery::AtFlush] {
        print!("{roles:?} x {n}, {delivery:?}: ");
        check(bound, at_least, model(roles, n, delivery, seen.clone()));
    }
    seen
}

#[test]
fn r1w1() {
    check_roles(None, &[Read, Write], 1, 48);
    check_roles(None, &[Write, Read], 1, 93);
}

#[test]
fn r1w1_by_a_network_thread() {
    check(Some(2), 2_377, model(&[Read, Write], 1, Delivery::Nic, Arc::default()));
}

#[test]
fn r2_share() {
    let seen = check_roles(None, &[Read, Read], 1, 45);
    assert_eq!(seen.most_readers.load(Relaxed), 2, "no execution had both readers inside");
}

#[test]
fn w2() {
    check_roles(None, &[Write, Write], 1, 81);
}

#[test]
fn r1w1_twice() {
    check_roles(Some(3), &[Read, Write], 2, 163);
}

#[test]
fn w2_twice() {
    check_roles(Some(3), &[Write, Write], 2, 675);
}

#[test]
fn r1w2() {
    check_roles(Some(4), &[Read, Write, Write], 1, 6_697);
}

#[test]
fn r2w1() {
    let seen = check_roles(Some(4), &[Read, Read, Write], 1, 4_681);
    assert_eq!(seen.most_readers.load(Relaxed), 2, "no execution had both readers inside");
}

#[test]
fn r2w2() {
    check_roles(Some(2), &[Read, Read, Write, Write], 1, 2_474);
}

#[test]
fn trying() {
    for (roles, at_least) in
        [(&[TryRead, Write][..], 23), (&[TryWrite, Write], 48), (&[TryWrite, Read], 99), (&[TryWrite, TryWrite], 10)]
    {
        let seen = check_roles(None, roles, 1, at_least);
        assert!(seen.refused.load(Relaxed) > 0 && seen.had.load(Relaxed) > 0, "{roles:?}: {seen:?}");
    }
    check_roles(Some(3), &[TryWrite, Read, Write], 1, 1_601);
    check_roles(Some(3), &[TryRead, Write, Write], 1, 1_197);
}

#[test]
fn giving_up() {
    for (roles, at_least) in [
        (&[ReadBefore, Write, Clock][..], 118),
        (&[WriteBefore, Write, Clock], 246),
        (&[WriteBefore, Read, Clock], 168),
    ] {
        let seen = check_roles(Some(3), roles, 1, at_least);
        assert!(seen.refused.load(Relaxed) > 0, "{roles:?}: {seen:?}");
    }
}

#[test]
fn giving_up_among_others() {
    for (roles, at_least) in [
        (&[WriteBefore, Write, Read, Clock][..], 763),
        (&[ReadBefore, Read, Write, Clock], 444),
        (&[WriteBefore, WriteBefore, Read, Clock], 1_240),
        (&[ReadBefore, ReadBefore, Write, Clock], 528),
    ] {
        check_roles(Some(2), roles, 1, at_least);
    }
}
