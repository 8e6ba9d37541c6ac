//! Passive target, with every lock of the crate.

use super::everywhere;
use checks::jobs::threads;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{
    AccessLock, LockMode, Op, RwLock, Window, WindowOptions,
    locks::{LockKind, OneLock, WindowLock},
};

const ROUNDS: i64 = if cfg!(miri) { 2 } else { 20 };

async fn count(fabric: Fabric, lock: LockKind) -> ProgramResult<Vec<i64>> {
    match lock {
        LockKind::TwoLevels => count_with::<WindowLock>(fabric, WindowOptions::default()).await,
        kind => {
            let options = WindowOptions { lock: kind.into(), ..WindowOptions::default() };
            count_with::<OneLock<RwLock>>(fabric, options).await
        }
    }
}

/// The elements: a count under exclusive access; accumulates under shared access; accumulates by
/// all ranks; a maximum; tickets.
async fn count_with<L: AccessLock>(fabric: Fabric, options: WindowOptions<L::Options>) -> ProgramResult<Vec<i64>> {
    let window = Window::<i64, L>::allocate_with(&fabric, 8, options).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    for round in 0..ROUNDS {
        let target = Rank::new((me + round as u32) % ranks);
        let epoch = window.lock(LockMode::Exclusive, target).await?;
        let old = epoch.get_one(0).await?;
        epoch.put(0, [old + 1]).await?;
        epoch.unlock().await?;

        let epoch = window.lock(LockMode::Shared, target).await?;
        epoch.accumulate(1, Op::Sum, &[1, 10, 100]).await?;
        epoch.unlock().await?;

        let epoch = window.lock_all().await?;
        for rank in 0..ranks {
            let target = epoch.at(Rank::new(rank))?;
            target.accumulate(4, Op::Max, &[i64::from(me) - 100]).await?;
            target.raccumulate(5, Op::BitOr, &[1 << me])?.await?;
        }
        epoch.flush_all().await?;
        let ticket = epoch.at(Rank::new(0))?.fetch_and_op(6, Op::Sum, 1).await?;
        assert!((0..ROUNDS * i64::from(ranks)).contains(&ticket));
        let mut before = epoch.at(Rank::new(0))?.get_one(7).await?;
        loop {
            match epoch.at(Rank::new(0))?.compare_and_swap(7, before, before + 1).await? {
                seen if seen == before => break,
                seen => before = seen,
            }
        }
        epoch.unlock().await?;
    }
    window.barrier().await?;
    let mut mine = vec![0; 8];
    window.read(0, &mut mine)?;
    assert_eq!(window.load(6)?, mine[6]);
    window.free().await?;
    Ok(mine)
}

#[test]
fn every_lock_keeps_counts() {
    const RANKS: i64 = 4;
    for lock in LockKind::ALL {
        let all = everywhere(RANKS as usize, &async |fabric| count(fabric, lock).await);
        for (rank, mine) in all.iter().enumerate() {
            let at_home = if rank == 0 { ROUNDS * RANKS } else { 0 };
            // In its rounds each rank accesses every rank.
            assert_eq!(mine[0], ROUNDS, "{lock}");
            assert_eq!(mine[1..4], [ROUNDS, 10 * ROUNDS, 100 * ROUNDS], "{lock}");
            // No value exceeds the initial 0.
            assert_eq!(mine[4..], [0, 0b1111, at_home, at_home], "{lock}");
        }
    }
}

/// Halos by gets into the window itself, without a lock.
async fn halos(fabric: Fabric, no_check: bool) -> ProgramResult<Vec<f64>> {
    let window = Window::<f64>::allocate(&fabric, 3).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    let (left, right) = (Rank::new((me + ranks - 1) % ranks), Rank::new((me + 1) % ranks));
    let epoch = if no_check { window.lock_all_no_check()? } else { window.lock_all().await? };
    for round in 0..5 {
        window.write(1, &[f64::from(me) + f64::from(round) * 0.5])?;
        window.sync();
        window.barrier().await?;
        epoch.at(left)?.get_into(1, window.own(0..1)?).await?;
        let neighbour = epoch.at(right)?;
        let mut request = neighbour.rget(1, vec![0.0]).await?;
        epoch.flush_local_all().await?;
        let _ = request.test();
        window.write(2, &request.await?)?;
        window.barrier().await?;
    }
    epoch.unlock().await?;
    let mut all = vec![0.0; 3];
    window.read(0, &mut all)?;
    window.free().await?;
    Ok(all)
}

#[test]
fn gets_into_the_window_are_there_after_a_flush() {
    for no_check in [false, true] {
        let all = everywhere(3, &async |fabric| halos(fabric, no_check).await);
        assert_eq!(all, [[4.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 2.0]], "{no_check}");
    }
}

/// Registered memory as a source may be written again after a local flush.
async fn own_memory_as_source(fabric: Fabric) -> ProgramResult<Vec<u32>> {
    let window = Window::<u32>::allocate(&fabric, 4).await?;
    let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    let epoch = window.lock_no_check(next)?;
    window.write(0, &[7, 8])?;
    epoch.put(2, window.own(0..2)?).await?;
    epoch.flush_local().await?;
    window.write(0, &[1, 1])?;
    let source = epoch.rput(2, vec![9]).await?.await?;
    assert_eq!(source, [9]);
    epoch.flush().await?;
    epoch.unlock().await?;
    window.barrier().await?;
    let mut all = vec![0; 4];
    window.read(0, &mut all)?;
    window.free().await?;
    Ok(all)
}

#[test]
fn sources_may_be_reused_after_a_local_flush() {
    // The two puts of element 2 are not ordered relative to each other.
    let all = everywhere_or_unordered();
    assert!(all.iter().all(|mine| mine[..2] == [1, 1] && mine[3] == 8 && [7, 9].contains(&mine[2])), "{all:?}");
}

fn everywhere_or_unordered() -> Vec<Vec<u32>> {
    threads(3).segment_bytes(1 << 17).run(&own_memory_as_source).expect("all ranks end well")
}

/// Two disjoint groups have their own windows at the same time; the lock is at a member other than
/// the first.
async fn in_groups(fabric: Fabric) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let odd = u64::from(fabric.rank().number() % 2);
    let mut group = world.split(Some(odd), 0).await?.ok_or("nobody stays out")?;
    let last = group.rank(group.len() - 1)?;
    let options = rma_lock::WindowOptions { home: Some(last), ..Default::default() };
    let window = Window::<u64, WindowLock>::in_group_with(&mut group, 1, options).await?;
    let epoch = window.lock(LockMode::Exclusive, last).await?;
    let old = epoch.get_one(0).await?;
    epoch.put(0, [old + 1 + odd]).await?;
    epoch.unlock().await?;
    let stranger = Rank::new(fabric.rank().number() ^ 1);
    let refused = window.lock(LockMode::Shared, stranger).await.map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("none of the group's")));
    window.barrier().await?;
    let sum = window.load(0)?;
    window.free().await?;
    Ok(sum)
}

#[test]
fn groups_have_windows_of_their_own() {
    assert_eq!(everywhere(5, &in_groups), [0, 0, 0, 4, 3]);
}

/// Over shared memory all futures of a window may move between threads.
#[test]
fn futures_can_be_sent() {
    fn is_send<T: Send>(_: T) {}
    async fn all(fabric: Fabric) -> ProgramResult<()> {
        let window = Window::<f32>::allocate(&fabric, 4).await?;
        let epoch = window.lock(LockMode::Exclusive, Rank::new(0)).await?;
        epoch.raccumulate(0, Op::Prod, &[1.0])?.await?;
        epoch.rget(0, vec![0.0]).await?.await?;
        epoch.get_into(0, window.own(0..1)?).await?;
        epoch.flush().await?;
        epoch.unlock().await?;
        let exposure = window.post(&[Rank::new(0)]).await?;
        window.start(&[Rank::new(0)]).await?.complete().await?;
        exposure.wait().await?;
        window.fence().await?.end().await?;
        Ok(window.free().await?)
    }
    let check = |fabric: Fabric| is_send(all(fabric));
    threads(1).segment_bytes(1 << 16).run(&of_one).unwrap();
    let _ = check;
}

/// A rank may be origin and target of itself.
async fn of_one(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<f32>::allocate(&fabric, 1).await?;
    let me = fabric.rank();
    let exposure = window.post(&[me]).await?;
    let epoch = window.start(&[me]).await?;
    epoch.at(me)?.put(0, [2.5]).await?;
    epoch.complete().await?;
    exposure.wait().await?;
    let epoch = window.lock_all().await?;
    assert_eq!(epoch.at(me)?.get_accumulate(0, Op::Prod, &[2.0]).await?, [2.5]);
    assert_eq!(epoch.at(me)?.get_one(0).await?, 5.0);
    epoch.unlock().await?;
    Ok(window.free().await?)
}
