//! Memory under a lock: over thread ranks by reference (and Miri's weak memory,
//! `cargo xtask miri`), and in virtual time by copies.

mod keys;
mod poison;

use checks::jobs::{self, virtual_time};
use rdma_fabric::{Fabric, FabricError, Group, Program, ProgramResult, Rank};
use rma_lock::{
    Excludes, LockError, Locked, LockedReadGuard, LockedWriteGuard,
    locks::{BackOffLock, RpLock, WindowLock},
};
use tofu2_sim::{shm::Threads, virt::Platform};

const RANKS: usize = 3;
const HOME: Rank = Rank::new(0);
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 400 };
/// The number of elements per rank: more than a cache line, so that a torn version is detected.
const LEN: usize = if cfg!(miri) { 3 } else { 40 };

fn threads() -> Threads {
    jobs::threads(RANKS).segment_bytes(1 << 16)
}

/// Runs `program` on threads and, except under Miri, in virtual time.
fn everywhere<P: Program>(program: &P) -> Vec<Vec<P::Out>> {
    let mut all = vec![threads().run(program).unwrap()];
    if !cfg!(miri) {
        all.push(virtual_time(&Platform::fx100(), RANKS).run(program).unwrap().outs);
    }
    all
}

/// Checks that all elements of all ranks' parts have the same version, and returns it.
async fn version<L: Excludes>(guard: &LockedReadGuard<'_, u64, L>) -> ProgramResult<u64> {
    let locked = guard.locked();
    let mut versions = Vec::new();
    for rank in 0..locked.fabric().ranks() as u32 {
        let copied = guard.get(Rank::new(rank), 0..locked.len()).await?;
        if locked.maps() {
            assert_eq!(guard.part(Rank::new(rank))?, copied, "both ways lead to the same bytes");
        }
        versions.extend(copied);
    }
    assert!(versions.iter().all(|version| *version == versions[0]), "torn: {versions:?}");
    Ok(versions[0])
}

/// Writes the next version everywhere: by reference to each rank in turn, by reference to all ranks
/// at once, or by copies.
async fn write<L: Excludes>(guard: &mut LockedWriteGuard<'_, u64, L>, round: u64) -> ProgramResult<()> {
    let (ranks, len, maps) = (guard.locked().fabric().ranks(), guard.locked().len(), guard.locked().maps());
    if maps && round.is_multiple_of(3) {
        for rank in 0..ranks as u32 {
            guard.part_mut(Rank::new(rank))?.iter_mut().for_each(|element| *element += 1);
        }
    } else if maps && round % 3 == 1 {
        let mut parts: Vec<&mut [u64]> = guard.parts_mut()?.collect();
        assert_eq!(parts.len(), ranks);
        (0..len).for_each(|at| parts.iter_mut().for_each(|part| part[at] += 1));
    } else {
        for rank in 0..ranks as u32 {
            let mut part = guard.get(Rank::new(rank), 0..len).await?;
            part.iter_mut().for_each(|element| *element += 1);
            let (first, second) = part.split_at(len / 2);
            guard.put(Rank::new(rank), 0, first.to_vec()).await?;
            guard.put(Rank::new(rank), len / 2, second.to_vec()).await?;
        }
    }
    Ok(())
}

/// Writes versions that must never be seen torn; returns the last one.
async fn versions(fabric: Fabric, which: u8, rounds: u64) -> ProgramResult<u64> {
    match which {
        0 => turns::<RpLock>(fabric, rounds).await,
        1 => turns::<BackOffLock>(fabric, rounds).await,
        _ => turns::<WindowLock>(fabric, rounds).await,
    }
}

async fn turns<L: Excludes>(fabric: Fabric, rounds: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64, L>::symmetric(&fabric, HOME, LEN).await?;
    let mut last = 0;
    for round in 0..rounds {
        if (round + u64::from(fabric.rank().number())).is_multiple_of(2) {
            let mut guard = locked.write().await?;
            write(&mut guard, round).await?;
            guard.release().await?;
        } else {
            let guard = locked.read().await?;
            let now = version(&guard).await?;
            assert!(now >= last, "an older version");
            last = now;
            guard.release().await?;
        }
    }
    world.barrier().await?;
    let guard = locked.read().await?;
    let last = version(&guard).await?;
    guard.release().await?;
    world.barrier().await?;
    Ok(last)
}

#[test]
fn writers_exclude_readers_and_each_other() {
    let rounds = if cfg!(miri) { ROUNDS } else { ROUNDS / 4 * 4 };
    let writes = |rank: u64| (0..rounds).filter(|round| (round + rank).is_multiple_of(2)).count() as u64;
    let writes: u64 = (0..RANKS as u64).map(writes).sum();
    for which in 0..if cfg!(miri) { 2 } else { 3 } {
        for outs in everywhere(&async |fabric| versions(fabric, which, rounds).await) {
            assert_eq!(outs, vec![writes; RANKS], "lock {which}");
        }
    }
}

/// Ranks that disagree on the home, the length, the element or the kind of lock.
async fn disagree(fabric: Fabric) -> ProgramResult<()> {
    let me = fabric.rank();
    let odd = me == Rank::new(1);
    let home = Locked::<u64>::symmetric(&fabric, if odd { me } else { HOME }, 4).await.map(drop);
    let len = Locked::<u64>::symmetric(&fabric, HOME, if odd { 5 } else { 4 }).await.map(drop);
    let element = if odd {
        Locked::<u32>::symmetric(&fabric, HOME, 8).await.map(drop)
    } else {
        Locked::<u64>::symmetric(&fabric, HOME, 4).await.map(drop)
    };
    let kind = if odd {
        Locked::<u64, BackOffLock>::symmetric(&fabric, HOME, 4).await.map(drop)
    } else {
        Locked::<u64>::symmetric(&fabric, HOME, 4).await.map(drop)
    };
    let open = if odd {
        fabric.alloc_symmetric(64 + 32).await.map(drop).map_err(LockError::from)
    } else {
        Locked::<u64>::symmetric(&fabric, HOME, 4).await.map(drop)
    };
    for (what, outcome) in [("home", home), ("len", len), ("element", element), ("kind", kind), ("open", open)] {
        match outcome {
            Err(LockError::Fabric(FabricError::Mismatch(_))) => {}
            other => return Err(format!("{what}: {other:?}").into()),
        }
    }
    let nowhere = Locked::<u64>::symmetric(&fabric, Rank::new(99), 4).await.map(drop);
    assert!(matches!(nowhere, Err(LockError::Fabric(FabricError::NoSuchRank { .. }))));
    // Nothing is left that would prevent them from agreeing afterwards.
    let locked = Locked::<u64>::symmetric(&fabric, HOME, 4).await?;
    locked.write().await?.release().await?;
    Ok(Group::world(&fabric).await?.barrier().await?)
}

#[test]
fn ranks_that_disagree_are_told() {
    threads().run(&disagree).unwrap();
}

/// Rank 0 drops its memory while rank 1 writes it by reference, and all allocate more.
async fn drop_under_a_guard(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let home = Rank::new(1);
    let locked = Locked::<u64>::symmetric(&fabric, home, LEN).await?;
    let holder = fabric.rank() == home;
    if holder {
        let mut guard = locked.write().await?;
        let part = guard.part_mut(HOME)?;
        part.fill(5);
        world.barrier().await?;
        // The other ranks drop their memory in between.
        world.barrier().await?;
        fabric.sleep(std::time::Duration::from_millis(if cfg!(miri) { 1 } else { 50 })).await;
        let more = fabric.alloc_symmetric(8 * LEN).await?;
        let there = fabric.remote_span::<u64>(more.at(HOME, 0), LEN)?;
        fabric.put(&there, vec![9; LEN]).await?;
        assert!(part.iter().all(|element| *element == 5), "the place was used again");
        part.fill(6);
        assert_eq!(fabric.get(&there, vec![0; LEN]).await?, [9; LEN]);
        world.barrier().await?;
        guard.release().await?;
    } else {
        world.barrier().await?;
        drop(locked);
        world.barrier().await?;
        let more = fabric.alloc_symmetric(8 * LEN).await?;
        world.barrier().await?;
        drop(more);
    }
    world.barrier().await?;
    Ok(())
}

#[test]
fn memory_outlives_its_owner_while_a_peer_may_refer_to_it() {
    threads().run(&drop_under_a_guard).unwrap();
}

async fn odd_ends(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<[u8; 3]>::symmetric(&fabric, HOME, 5).await?;
    let nobody = Locked::<u64>::symmetric(&fabric, HOME, 0).await?;
    world.barrier().await?;
    if fabric.rank() == HOME {
        let held = locked.try_write().await?.ok_or("it is free")?;
        assert!(locked.try_read().await?.is_none() && locked.try_write().await?.is_none());
        let soon = fabric.now() + std::time::Duration::from_millis(1);
        assert_eq!(LockError::from(locked.read_before(soon).await.unwrap_err()), LockError::TimedOut);
        held.release().await?;
        let mut held = locked.write().await?;
        for (start, end) in [(0, 6), (6, 6), (3, 2), (usize::MAX, usize::MAX), (0, usize::MAX)] {
            let outside = held.get(HOME, start..end).await;
            assert!(matches!(outside, Err(LockError::Fabric(FabricError::OutOfBounds(_)))));
        }
        assert!(held.put(HOME, 4, [[1; 3], [2; 3]]).await.is_err());
        held.put(HOME, 4, [[1; 3]]).await?;
        assert_eq!(held.get(HOME, 3..5).await?, [[0; 3], [1; 3]]);
        assert_eq!(held.get_into(HOME, 4, [[9; 3]]).await?, [[1; 3]]);
        assert!(held.get(HOME, 5..5).await?.is_empty());
        let nowhere = held.part(Rank::new(77)).map(<[_]>::len);
        assert!(matches!(nowhere, Err(LockError::Fabric(FabricError::NoSuchRank { .. }))));
        let here = held.part(HOME).map(|part| part[4]);
        match here {
            Ok(last) => assert_eq!(last, [1; 3]),
            Err(LockError::Fabric(error)) => {
                assert!(matches!(error, FabricError::NotMapped { .. }) && !locked.maps(), "{error}");
                assert!(held.part_mut(HOME).is_err() && held.parts_mut().is_err());
            }
            Err(error) => return Err(error.into()),
        }
        held.release().await?;
        let none = nobody.read().await?;
        assert!(none.get(HOME, 0..0).await?.is_empty());
        assert!(!nobody.maps() || none.part(HOME)?.is_empty());
    }
    Ok(world.barrier().await?)
}

#[test]
fn bounds_tries_and_deadlines() {
    everywhere(&odd_ends);
}

/// Checks the `Send` and `Sync` implementations of the types.
#[test]
fn memory_and_references_cross_threads_as_far_as_the_fabric_does() {
    fn sends<T: Send>() {}
    fn shares<T: Sync>() {}
    sends::<Locked<u64>>();
    shares::<Locked<u64>>();
    shares::<LockedReadGuard<'_, u64>>();
}

/// The fabric that launchers pass to programs supports all of this.
#[allow(dead_code)]
async fn is_general(fabric: Fabric) -> ProgramResult<()> {
    Ok(Locked::<u64>::symmetric(&fabric, HOME, 1).await?.read().await?.release().await?)
}
