//! Memory under a lock: over thread ranks by reference (and Miri's weak memory,
//! `cargo xtask miri`), and in virtual time by copies.

use checks::jobs::{self, virtual_time};
use rdma_fabric::{AtomicWord, Deps, Fabric, FabricError, Group, Program, ProgramResult, Rank, RegionKey, RemoteAddr};
use rma_lock::{
    AcquireError, Entered, Excludes, LockError, Locked, LockedReadGuard, LockedWriteGuard,
    locks::{BackOffLock, RpLock, WindowLock},
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

/// Returns whether `outcome` is the refusal of a locked region.
fn locked_out<T>(outcome: rdma_fabric::Result<T>) -> bool {
    matches!(outcome, Err(FabricError::Locked { .. }))
}

/// Returns whether every form of access to the bytes at `addr` is refused.
fn is_shut(fabric: &Fabric, addr: RemoteAddr) -> bool {
    let own = addr.rank == fabric.rank();
    locked_out(fabric.remote_word::<u64>(addr))
        && locked_out(fabric.remote_word::<u32>(addr))
        && locked_out(fabric.remote_span::<u8>(addr, 8))
        && locked_out(fabric.locate(addr, 8, 1, 1))
        && locked_out(fabric.locate(addr, 0, 1, 1))
        && (!own || locked_out(fabric.local_word::<u64>(addr)) && locked_out(fabric.local_span::<u64>(addr, 1)))
}

/// Guesses all keys; returns the number of keys that belong to locked regions.
async fn guess(fabric: Fabric) -> ProgramResult<usize> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64>::symmetric(&fabric, HOME, 8).await?;
    let mut guard = locked.write().await?;
    if fabric.rank() == HOME {
        for rank in 0..fabric.ranks() as u32 {
            guard.put(Rank::new(rank), 0, vec![7; 8]).await?;
        }
    }
    guard.release().await?;
    world.barrier().await?;
    let mut shut = 0;
    let indices = (0..if cfg!(miri) { 8 } else { 4200 }).flat_map(|index| [index, index | 1 << 31]);
    for (index, generation) in indices.flat_map(|index| (0..6).map(move |generation| (index, generation))) {
        for rank in 0..fabric.ranks() as u32 {
            let at = |offset| RemoteAddr { rank: Rank::new(rank), region: RegionKey { index, generation }, offset };
            if locked_out(fabric.remote_word::<u64>(at(0))) {
                shut += 1;
                for offset in [0, 64, 72, 120, 1 << 20, u64::MAX] {
                    assert!(is_shut(&fabric, at(offset)), "{:?}", at(offset));
                }
            }
        }
    }
    let guard = locked.read().await?;
    for rank in 0..fabric.ranks() as u32 {
        assert_eq!(guard.get(Rank::new(rank), 0..8).await?, [7; 8]);
    }
    guard.release().await?;
    world.barrier().await?;
    // A wait on a word of this rank's own memory must also resolve the word first, so it does not
    // grant access either.
    let word = fabric.alloc(8)?;
    let word = word.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&word, Deps::All, |value| value == u64::from_bits(0)).await?;
    Ok(shut)
}

#[test]
fn keys_that_are_guessed_lead_nowhere() {
    for outs in everywhere(&guess) {
        // Each rank's memory and its lock words.
        assert_eq!(outs, [2 * RANKS; RANKS]);
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

/// Panics under `guard`, in the middle of a change.
fn panic_inside(mut guard: LockedWriteGuard<'_, u64>) {
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        if guard.locked().maps() {
            guard.part_mut(Rank::new(2)).unwrap()[0] = 1;
        }
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
}

fn poisoned_by<G>(entered: Entered<G>) -> ProgramResult<(G, Rank)> {
    match entered {
        Err(AcquireError::Poisoned(poisoned)) => {
            let by = poisoned.by();
            Ok((poisoned.into_inner(), by))
        }
        Ok(_) => Err("not poisoned".into()),
        Err(AcquireError::Lock(error)) => Err(error.into()),
    }
}

async fn poison(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64>::symmetric(&fabric, HOME, 4).await?;
    let culprit = Rank::new(1);
    if fabric.rank() == culprit {
        panic_inside(locked.write().await?);
    }
    world.barrier().await?;
    // Every rank receives the error, each time and from every call.
    for _ in 0..2 {
        let (guard, by) = poisoned_by(locked.read().await)?;
        assert_eq!(by, culprit);
        guard.release().await?;
        assert_eq!(LockError::from(locked.write().await.unwrap_err()), LockError::Poisoned { by });
        let far = fabric.now() + std::time::Duration::from_secs(60);
        let (guard, _) = poisoned_by(locked.read_before(far).await)?;
        guard.release().await?;
        let (guard, _) = poisoned_by(locked.write_before(far).await)?;
        guard.release().await?;
    }
    world.barrier().await?;
    if fabric.rank() == Rank::new(2) {
        let (mut guard, _) = poisoned_by(locked.write().await)?;
        guard.put(Rank::new(2), 0, [0]).await?;
        guard.clear_poison().await?;
        guard.release().await?;
    }
    world.barrier().await?;
    locked.read().await?.release().await?;
    // Neither shared access nor dropping a guard poisons the memory.
    let shared = locked.read().await?;
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _shared = shared;
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    drop(locked.write().await?);
    world.barrier().await?;
    locked.write().await?.release().await?;
    Ok(world.barrier().await?)
}

#[test]
fn a_panic_inside_poisons_for_all() {
    everywhere(&poison);
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
