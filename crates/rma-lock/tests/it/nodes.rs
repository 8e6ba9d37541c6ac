//! Node-aware locks in virtual time: the exact number of operations at their home, and the duration
//! of a wave of readers.

use checks::jobs::virtual_time;
use observe::Recorder;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{
    Access, AccessLock, Guard, Lock, RmaLock, RwLock,
    locks::{Aggregated, Choice, EachLock, EachOptions, Hint, IndicatorLock, LockKind, PerRankLock, RpLock},
};
use std::time::Duration;
use tofu2_sim::virt::Platform;

/// The lock's home. It is not the first rank of its node, which stores the node's words.
const HOME: Rank = Rank::new(1);

/// Returns the number of additions that this rank has posted to the home: each of a reader's steps
/// at a lock is one. (Wakes are compare-and-swaps.)
fn additions(recorder: &Recorder) -> u64 {
    recorder.record().counts.peers.get(&HOME.number()).map_or(0, |counts| counts.atomics.add)
}

/// Takes and releases the lock `waves` times on all ranks, with barriers in between if `apart`;
/// returns this rank's additions at the home.
async fn waves(fabric: Fabric, kind: LockKind, waves: u32, apart: bool) -> ProgramResult<u64> {
    let recorder = Recorder::new(fabric.rank(), None);
    let observed = observe::observed(&fabric, recorder.clone());
    let lock = RwLock::symmetric_with(&observed, HOME, kind.into()).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    let before = additions(&recorder);
    for _ in 0..waves {
        let guard = lock.read().await?;
        if apart {
            world.barrier().await?;
        }
        guard.release().await?;
        if apart {
            world.barrier().await?;
        }
    }
    let counted = additions(&recorder) - before;
    // All ranks must finish before the memory of any of them is freed.
    world.barrier().await?;
    Ok(counted)
}

/// Returns the number of additions at the home in `waves_of` waves of `nodes` x `ranks_per_node`
/// ranks.
fn at_home(lock: LockKind, nodes: usize, ranks_per_node: u32, waves_of: u32, apart: bool) -> u64 {
    let job = virtual_time(&Platform::fx100(), nodes * ranks_per_node as usize).ranks_per_node(ranks_per_node);
    job.run(&async |fabric| waves(fabric, lock, waves_of, apart).await).unwrap().outs.iter().sum()
}

#[test]
fn a_wave_costs_the_home_two_operations_for_each_node() {
    const WAVES: u64 = 3;
    for lock in [LockKind::ByNode, LockKind::ByNodeBackOff] {
        assert_eq!(at_home(lock, 16, 8, WAVES as u32, true), WAVES * 2 * 16, "{lock}");
        assert_eq!(at_home(lock, 32, 32, WAVES as u32, true), WAVES * 2 * 32, "{lock}, 1024 ranks");
    }
    assert_eq!(at_home(LockKind::ReaderPreference, 16, 8, WAVES as u32, true), WAVES * 2 * 128);
}

#[test]
fn a_wave_through_a_tree_costs_the_home_two_operations_for_each_top_unit() {
    const WAVES: u64 = 2;
    for (nodes, radix, units) in [(16, 4, 4), (64, 8, 8), (64, 4, 4), (27, 3, 3), (10, 4, 3), (5, 8, 5), (17, 2, 2)] {
        assert_eq!(
            at_home(LockKind::Tree { radix }, nodes, 4, WAVES as u32, true),
            WAVES * 2 * units,
            "{nodes} by {radix}"
        );
    }
}

/// Without barriers, the cost is between two operations for each node and two for each rank.
#[test]
fn without_barriers_it_costs_no_more_than_a_flat_lock() {
    const WAVES: u64 = 20;
    let flat = at_home(LockKind::ReaderPreference, 32, 8, WAVES as u32, false);
    assert_eq!(flat, WAVES * 2 * 256);
    for lock in [LockKind::ByNode, LockKind::Tree { radix: 8 }] {
        let home = at_home(lock, 32, 8, WAVES as u32, false);
        println!("{lock}: {home} operations at the home, {flat} of a flat lock");
        assert!(home < flat, "{lock}: {home}");
    }
}

/// A node of readers, and a writer on another node that leaves only after a while. Returns the time
/// when this rank was inside, in picoseconds since the writer released the lock; rank 0 of the
/// readers gives up early.
async fn a_leader_that_gives_up(fabric: Fabric) -> ProgramResult<Option<i64>> {
    let lock = Aggregated::<RpLock>::symmetric(&fabric, HOME).await?;
    let mut world = Group::world(&fabric).await?;
    let last = Rank::new(fabric.ranks() as u32 - 1);
    let held = if fabric.rank() == last { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    let end = fabric.now() + Duration::from_micros(200);
    if let Some(guard) = held {
        fabric.sleep_until(end).await;
        guard.release().await?;
        world.barrier().await?;
        return Ok(None);
    }
    fabric.sleep(Duration::from_micros(u64::from(fabric.rank().number()) * 10)).await;
    if fabric.rank() == Rank::new(0) {
        let deadline = fabric.now() + Duration::from_micros(100);
        assert_eq!(lock.read_before(deadline).await.err(), Some(rma_lock::LockError::TimedOut));
        world.barrier().await?;
        return Ok(None);
    }
    assert!(lock.try_read().await?.is_none());
    let guard = lock.read().await?;
    let late = fabric.now().as_picos() as i64 - end.as_picos() as i64;
    guard.release().await?;
    world.barrier().await?;
    Ok(Some(late))
}

#[test]
fn another_rank_leads_when_the_first_gives_up() {
    let outs = virtual_time(&Platform::fx100(), 9).ranks_per_node(8).run(&a_leader_that_gives_up).unwrap().outs;
    let late: Vec<_> = outs.iter().flatten().collect();
    assert_eq!(late.len(), 7, "{outs:?}");
    assert!(late.iter().all(|late| (0..100_000_000).contains(*late)), "{late:?}");
}

/// Returns the number of operations of any kind that this rank has posted to other nodes.
fn abroad(fabric: &Fabric, recorder: &Recorder) -> u64 {
    let node = |rank| fabric.node(rank).unwrap();
    let here = node(fabric.rank());
    let counts = recorder.record().counts;
    let peers = counts.peers.iter().filter(|(peer, _)| node(Rank::new(**peer)) != here);
    peers.map(|(_, counts)| counts.puts + counts.gets + counts.atomics.sum()).sum()
}

/// Readers of an indicator lock: returns the number of operations that this rank posted to other
/// nodes without a writer, and the number of writes that it sees at the end.
async fn indicated(fabric: Fabric) -> ProgramResult<(u64, u64)> {
    let recorder = Recorder::new(fabric.rank(), None);
    let observed = observe::observed(&fabric, recorder.clone());
    let lock = IndicatorLock::<RpLock>::symmetric(&observed, HOME).await?;
    let data = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(data.at(HOME, 0))?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    for _ in 0..10 {
        let guard = lock.read().await?;
        guard.release().await?;
    }
    let before = abroad(&fabric, &recorder);
    world.barrier().await?;
    let mut seen = 0;
    for round in 0..10u32 {
        if fabric.rank().number() % 64 == 3 && round % 5 == 4 {
            let guard = lock.write().await?;
            let old = fabric.get_word(&word).await?;
            fabric.put_word(&word, old + 1).await?;
            fabric.flush_all().await?;
            guard.release().await?;
        } else {
            let guard = lock.read().await?;
            let now = fabric.get_word(&word).await?;
            assert!(now >= seen, "a write was lost");
            seen = now;
            guard.release().await?;
        }
    }
    world.barrier().await?;
    let seen = fabric.get_word(&word).await?;
    world.barrier().await?;
    Ok((before, seen))
}

#[test]
fn readers_of_an_indicator_stay_at_their_node() {
    let outs = virtual_time(&Platform::fx100(), 256).ranks_per_node(8).run(&indicated).unwrap().outs;
    assert!(outs.iter().all(|out| *out == (0, 8)), "{:?}", &outs[..8]);
}

/// Every rank accesses all ranks at the same time; returns this rank's additions at the home, and
/// at all ranks.
async fn everywhere<L: AccessLock>(fabric: Fabric, options: L::Options, waves: u32) -> ProgramResult<(u64, u64)> {
    let recorder = Recorder::new(fabric.rank(), None);
    let observed = observe::observed(&fabric, recorder.clone());
    let lock = L::symmetric_with(&observed, HOME, options).await?;
    let mut world = Group::world(&fabric).await?;
    for _ in 0..waves {
        world.barrier().await?;
        let guard = lock.lock(Access::All).await?;
        world.barrier().await?;
        guard.release().await?;
    }
    world.barrier().await?;
    // Exclusive accesses to different ranks do not interfere, and exclude accesses to all ranks.
    let guard = lock.lock(Access::Exclusive(fabric.rank())).await?;
    world.barrier().await?;
    assert!(lock.try_lock(Access::All).await?.is_none());
    world.barrier().await?;
    guard.release().await?;
    world.barrier().await?;
    Ok((additions(&recorder), recorder.record().counts.total().atomics.add))
}

async fn accesses(fabric: Fabric, each: Option<bool>, waves_of: u32) -> ProgramResult<(u64, u64)> {
    match each {
        None => everywhere::<PerRankLock<RpLock>>(fabric, (), waves_of).await,
        Some(at_once) => {
            let options = EachOptions { at_once, lock: () };
            everywhere::<EachLock<RpLock>>(fabric, options, waves_of).await
        }
    }
}

/// Returns the cost of `waves_of` waves for the home and for all ranks together, without the
/// operations after them.
fn cost_of_waves(each: Option<bool>, nodes: usize, ranks_per_node: u32, waves_of: u32) -> (u64, u64) {
    let cost = |waves_of| {
        let job = virtual_time(&Platform::fx100(), nodes * ranks_per_node as usize).ranks_per_node(ranks_per_node);
        let outs = job.run(&async |fabric| accesses(fabric, each, waves_of).await).unwrap().outs;
        outs.iter().fold((0, 0), |sum, out| (sum.0 + out.0, sum.1 + out.1))
    };
    let (with, without) = (cost(waves_of + 1), cost(1));
    (with.0 - without.0, with.1 - without.1)
}

#[test]
fn access_to_all_costs_two_operations_for_each_node_instead_of_two_for_each_pair_of_ranks() {
    const WAVES: u64 = 2;
    // Each rank's lock is at that rank, so every rank accesses all ranks.
    for at_once in [false, true] {
        assert_eq!(cost_of_waves(Some(at_once), 8, 4, WAVES as u32), (WAVES * 2 * 32, WAVES * 2 * 32 * 32));
    }
    assert_eq!(cost_of_waves(None, 8, 4, WAVES as u32).0, WAVES * 2 * 8);
    assert_eq!(cost_of_waves(None, 32, 8, WAVES as u32).0, WAVES * 2 * 32, "256 ranks");
}

/// Every rank writes once, and reads before and after that, with a lock chosen at run time.
async fn with_any(fabric: Fabric, choice: Choice) -> ProgramResult<u64> {
    let lock = RwLock::symmetric_with(&fabric, HOME, choice).await?;
    let data = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(data.at(HOME, 0))?;
    let mut world = Group::world(&fabric).await?;
    for _ in 0..3 {
        let guard = lock.read().await?;
        guard.release().await?;
        let guard = lock.write().await?;
        let old = fabric.get_word(&word).await?;
        fabric.put_word(&word, old + 1).await?;
        guard.release().await?;
    }
    world.barrier().await?;
    let sum = fabric.get_word(&word).await?;
    world.barrier().await?;
    Ok(sum)
}

#[test]
fn a_lock_may_be_chosen_at_run_time() {
    let kinds = LockKind::ALL.into_iter().chain([LockKind::Tree { radix: 2 }]);
    for choice in kinds.map(Choice::from).chain([LockKind::auto(64, 16, Hint::MostlyShared)]) {
        let outs = virtual_time(&Platform::fx100(), 64)
            .ranks_per_node(4)
            .run(&async |fabric| with_any(fabric, choice).await)
            .unwrap()
            .outs;
        assert!(outs.iter().all(|out| *out == 3 * 64), "{choice}: {outs:?}");
    }
}
