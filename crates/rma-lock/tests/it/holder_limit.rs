//! Locks at their holder limit: one more holder is refused, and leaves no trace.
//!
//! No test takes a lock so often: a single atomic adds the contribution of the other guards to the
//! lock's word.

use checks::jobs::{threads, virtual_time};
use rdma_fabric::{
    Fabric, Group, Program, ProgramResult, Rank, Region, RegionKey, RemoteAddr, RemoteWord, join::join_all,
};
use rma_lock::{
    Access, AccessLock, Guard, Lock, LockError, RwLock,
    locks::{EachLock, LockKind, OneLock, PackedLock, PerRankLock, WindowLock},
};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};
use tofu2_sim::virt::Platform;

const HOME: Rank = Rank::new(0);
const RANKS: usize = 3;
const ROUNDS: usize = 300;
const LONG: Duration = Duration::from_secs(60);

/// The offset of a lock's holder count in its memory at the home, the amounts that each holder adds
/// when it enters and when it leaves, and the holder limit.
#[derive(Clone, Copy, Debug)]
struct Count {
    offset: u64,
    one: u64,
    leaves: u64,
    most: u32,
}

const fn count(offset: u64, one: u64) -> Count {
    Count { offset, one, leaves: one.wrapping_neg(), most: 1 << 26 }
}

/// The word follows the words of a queue, and also counts departures.
const GATE: Count = Count { leaves: (1 << 40) - 1, most: 1 << 22, ..count(128, 1) };
/// The word follows the space for 31 deaths.
const RECOVERABLE: Count = count(320, 4);

/// Returns the location of a lock's reader count; `None` if it has no word for that.
fn count_of(lock: LockKind) -> Option<Count> {
    Some(match lock {
        LockKind::ReaderPreference | LockKind::Packed | LockKind::Barging | LockKind::WritersFirst => count(0, 4),
        LockKind::Fair => return None,
        LockKind::BackOff => count(0, 2),
        LockKind::TwoLevels => count(64, 1 << 32),
        LockKind::ByNode => count(128, 4),
        // These locks count at the nodes, in the same way as the previous one.
        LockKind::ByNodeBackOff | LockKind::Tree { .. } => return None,
        LockKind::Indicator => GATE,
        LockKind::Recoverable => RECOVERABLE,
    })
}

/// Returns the counting word in the symmetric region that was allocated last.
async fn word_of(fabric: &Fabric, count: Count) -> ProgramResult<(RemoteWord<u64>, Region)> {
    let next = fabric.alloc_symmetric(8).await?;
    let region = RegionKey { index: next.key().index - 1, ..next.key() };
    Ok((fabric.remote_word::<u64>(RemoteAddr { rank: HOME, region, offset: count.offset })?, next))
}

/// Returns whether an acquisition was refused because of the holder limit; if it succeeded,
/// releases it and returns false.
async fn is_refused<G: Guard>(count: Count, outcome: Result<Option<G>, LockError>) -> ProgramResult<bool> {
    match outcome {
        Ok(Some(guard)) => guard.release().await.map(|()| false).map_err(Into::into),
        Ok(None) => Err("it would have to wait".into()),
        Err(LockError::TooManyHolders { most }) if most == count.most => Ok(true),
        Err(error) => Err(error.into()),
    }
}

async fn fill(fabric: Fabric, kind: LockKind, count: Count) -> ProgramResult<()> {
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
    let (word, kept) = word_of(&fabric, count).await?;
    let mut world = Group::world(&fabric).await?;
    let others = u64::from(count.most - 2);
    let me = fabric.rank();

    // One more holder than the limit is refused, by every call and every time.
    let mut held = Vec::new();
    if me == HOME {
        held.push(lock.read().await?);
        fabric.fetch_add(&word, others * count.one).await?;
        held.push(lock.read().await?);
    }
    world.barrier().await?;
    let full = fabric.get_word(&word).await?;
    world.barrier().await?;
    for _ in 0..ROUNDS / 30 {
        let late = fabric.now() + LONG;
        assert!(is_refused(count, lock.read().await.map(Some)).await?);
        assert!(is_refused(count, lock.try_read().await).await?);
        assert!(is_refused(count, lock.read_before(late).await.map(Some)).await?);
        for outcome in join_all((0..8).map(|_| lock.read())).await {
            assert!(is_refused(count, outcome.map(Some)).await?);
        }
        // A dropped future, with its atomic in flight if that takes time.
        drop(pin!(lock.read()).poll(&mut Context::from_waker(Waker::noop())));
    }
    fabric.sleep(Duration::from_micros(200)).await;
    world.barrier().await?;
    let holders = |word: u64| word / count.one % (4 * u64::from(count.most));
    assert_eq!(holders(fabric.get_word(&word).await?), holders(full), "taken back");
    world.barrier().await?;
    assert!(lock.try_write().await?.is_none());
    world.barrier().await?;

    // A writer enters as soon as the last reader has left, even if that reader was refused.
    let late = fabric.now() + LONG;
    match me.number() {
        0 => {
            fabric.sleep(Duration::from_micros(50)).await;
            fabric.fetch_add(&word, others.wrapping_mul(count.leaves)).await?;
            for guard in held {
                guard.release().await?;
            }
        }
        1 => lock.write_before(late).await?.release().await?,
        _ => {
            for _ in 0..ROUNDS {
                is_refused(count, lock.read_before(late).await.map(Some)).await?;
            }
        }
    }
    world.barrier().await?;
    if me == HOME {
        lock.try_write().await?.ok_or("it is free")?.release().await?;
    }
    world.barrier().await?;
    assert!(!is_refused(count, lock.read().await.map(Some)).await?);
    world.barrier().await?;
    drop(kept);
    Ok(())
}

fn on_threads<P: Program>(program: &P) {
    threads(RANKS).segment_bytes(1 << 16).run(program).unwrap();
}

fn in_virtual_time<P: Program>(program: &P) {
    virtual_time(&Platform::fx100(), RANKS).run(program).unwrap();
}

#[test]
fn one_too_many_is_refused_and_takes_itself_back() {
    let counting = LockKind::ALL.into_iter().filter_map(|lock| Some((lock, count_of(lock)?)));
    for (lock, count) in counting {
        println!("{lock}");
        on_threads(&async |fabric| fill(fabric, lock, count).await);
        // In virtual time each rank is on a separate node, and counts there.
        if !matches!(lock, LockKind::ByNode | LockKind::Indicator) {
            in_virtual_time(&async |fabric| fill(fabric, lock, count).await);
        }
    }
}

/// Checks the locks of windows: the location of the count of each access.
async fn windows(fabric: Fabric, which: u8) -> ProgramResult<()> {
    let home = Access::Shared(HOME);
    match which {
        0 => access::<OneLock<PackedLock>>(fabric, Access::All, count(0, 4)).await,
        1 => access::<WindowLock>(fabric, Access::All, count(64, 1 << 32)).await,
        2 => access::<WindowLock>(fabric, home, count(0, 2)).await,
        3 => access::<WindowLock>(fabric, Access::Exclusive(HOME), count(64, 1)).await,
        4 => access::<EachLock<PackedLock>>(fabric, home, count(0, 4)).await,
        5 => access::<EachLock<PackedLock>>(fabric, Access::All, count(0, 4)).await,
        6 => access::<PerRankLock<PackedLock>>(fabric, Access::All, count(0, 1)).await,
        7 => access::<PerRankLock<PackedLock>>(fabric, Access::Exclusive(HOME), count(0, 1 << 30)).await,
        _ => turns(fabric).await,
    }
}

/// While the home's word is at the holder limit, the access is refused; afterwards it succeeds.
async fn access<L: AccessLock>(fabric: Fabric, access: Access, count: Count) -> ProgramResult<()>
where
    L::Options: Default,
{
    let lock = L::symmetric_with(&fabric, HOME, L::Options::default()).await?;
    let (word, kept) = word_of(&fabric, count).await?;
    let mut world = Group::world(&fabric).await?;
    if fabric.rank() == HOME {
        let others = u64::from(count.most) * count.one;
        // Two classes count in one word, which begins in the first class's turn.
        let turn = if count.one == 1 << 30 { 1 << 60 } else { 0 };
        fabric.fetch_add(&word, others + turn).await?;
        for _ in 0..3 {
            assert!(is_refused(count, lock.lock(access).await.map(Some)).await?, "{access:?}");
            assert!(is_refused(count, lock.try_lock(access).await).await?, "{access:?}");
            assert_eq!(fabric.get_word(&word).await?, others + turn, "{access:?}");
        }
        fabric.fetch_add(&word, others.wrapping_neg()).await?;
        assert!(!is_refused(count, lock.lock(access).await.map(Some)).await?);
        assert!(!is_refused(count, lock.try_lock(Access::All).await).await?);
        lock.try_lock(Access::Exclusive(HOME)).await?.ok_or("it is free")?.release().await?;
    }
    world.barrier().await?;
    drop(kept);
    Ok(())
}

/// One rank beyond the limit, of a class that has to wait for its turn: it abandons its node, and
/// the rank that reaches the node uncounts it.
async fn turns(fabric: Fabric) -> ProgramResult<()> {
    const EVEN: Count = count(0, 1);
    let lock = PerRankLock::<PackedLock>::symmetric(&fabric, HOME).await?;
    let (word, kept) = word_of(&fabric, EVEN).await?;
    let mut world = Group::world(&fabric).await?;
    if fabric.rank() == HOME {
        let exclusive = lock.lock(Access::Exclusive(HOME)).await?;
        let before = fabric.get_word(&word).await?;
        // The largest number of ranks waits for the next turn; the first of them has closed the
        // batch that is inside.
        let mut waiting = pin!(lock.lock(Access::All));
        while fabric.get_word(&word).await? == before {
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            fabric.sleep(Duration::from_micros(1)).await;
        }
        let others = u64::from(EVEN.most) - 1;
        fabric.fetch_add(&word, others).await?;
        assert!(is_refused(EVEN, lock.lock(Access::All).await.map(Some)).await?);
        let left = fabric.get_word(&word).await?;
        assert_eq!(left, before + others + 2, "it stays counted until its turn");
        fabric.fetch_add(&word, others.wrapping_neg()).await?;
        exclusive.release().await?;
        waiting.await?.release().await?;
        lock.lock(Access::Exclusive(HOME)).await?.release().await?;
        lock.try_lock(Access::All).await?.ok_or("it is free")?.release().await?;
    }
    world.barrier().await?;
    drop(kept);
    Ok(())
}

#[test]
fn accesses_to_windows_are_refused_where_they_are_counted() {
    for which in 0..9 {
        println!("{which}");
        in_virtual_time(&async |fabric| windows(fabric, which).await);
    }
}
