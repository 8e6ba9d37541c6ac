//! Collectives, and waits of every kind: parked, idle, and under other executors.

use super::{HANG, threads, word};
use crate::other_executor;
use rdma_fabric::{Deps, Fabric, FabricError, Group, LocalWord, ProgramResult, Rank};
use std::time::{Duration, Instant};
use tofu2_shm::block_on;

/// Miri is slow, so it runs fewer rounds.
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 20 };

/// Runs all collectives several times, with results that depend on every rank.
async fn collectives(fabric: Fabric, rounds: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len() as u64, world.me() as u64);
    let counter = fabric.alloc_symmetric(8).await?;
    let mut sum = 0;
    for round in 0..rounds {
        for target in 0..n {
            let cell = fabric.remote_word::<u64>(word(target as u32, counter.key(), 0))?;
            fabric.fetch_add(&cell, me + round).await?;
        }
        world.barrier().await?;
        let own = fabric.load(&counter.word::<u64>(&fabric, 0)?)?;
        let all = world.allgather((me + 1) * (round + 1)).await?;
        assert_eq!(all, (0..n).map(|r| (r + 1) * (round + 1)).collect::<Vec<_>>());
        let root = (round % n) as usize;
        assert_eq!(world.broadcast(root, all[me as usize]).await?, (root as u64 + 1) * (round + 1));
        sum = own;
        world.barrier().await?;
    }
    let mut half = world.split(Some(me % 2), n - me).await?.ok_or("not in a group")?;
    let members = half.allgather(me).await?;
    assert_eq!(members, (0..n).rev().filter(|r| r % 2 == me % 2).collect::<Vec<_>>());
    assert!(world.split(None, 0).await?.is_none());
    Ok(sum)
}

#[test]
fn collectives_for_small_groups() {
    for n in 1..=if cfg!(miri) { 3 } else { 5 } {
        let out = threads(n as usize).run(&async |fabric| collectives(fabric, ROUNDS).await).unwrap();
        let each: u64 = (0..ROUNDS).map(|round| (0..n).map(|r| r + round).sum::<u64>()).sum();
        assert_eq!(out, vec![each; n as usize]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn many_ranks_on_few_cpus_make_progress() {
    let start = Instant::now();
    threads(16).run(&async |fabric| collectives(fabric, 10).await).unwrap();
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
}

/// Wakes a long-parked waiter by a put, by an atomic and by a notice.
async fn wakes(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let region = fabric.alloc_symmetric(64).await?;
    let (cell, addr) = (region.word::<u64>(&fabric, 0)?, word(1, region.key(), 0));
    let mut late = Vec::new();
    if fabric.rank() == Rank::new(0) {
        let there = fabric.remote_word::<u64>(addr)?;
        for step in 1..=3u64 {
            std::thread::sleep(Duration::from_millis(40));
            let told = fabric.now().as_picos();
            let time = fabric.remote_span::<u64>(word(1, region.key(), 8), 1)?;
            fabric.put(&time, [told]).await?;
            match step {
                1 => fabric.put_word(&there, 1).await?,
                2 => drop(fabric.fetch_add(&there, 1).await?),
                _ => drop(fabric.put_notify(&time, [told], 77).await?),
            }
            fabric.wait_until(&cell, Deps::One(Rank::new(1)), |seen| seen >= step).await?;
        }
    } else {
        let back = fabric.remote_word::<u64>(word(0, region.key(), 0))?;
        let time = region.word::<u64>(&fabric, 8)?;
        for step in 1..=3u64 {
            if step < 3 {
                fabric.wait_until(&cell, Deps::One(Rank::new(0)), |seen| seen == step).await?;
            } else {
                let notice = fabric.next_notice(Deps::All).await?;
                assert_eq!((notice.from, notice.data, notice.end), (Rank::new(0), 77, 16));
            }
            late.push((fabric.now().as_picos() - fabric.load(&time)?) / 1000);
            fabric.put_word(&back, step).await?;
        }
    }
    Ok(late)
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn parked_waiters_are_woken() {
    let late = threads(2).run(&wakes).unwrap().swap_remove(1);
    println!("woken after {late:?} ns");
    // A lost wake-up would cost 10 ms each time.
    assert!(late.iter().min().is_some_and(|&ns| ns < 5_000_000), "{late:?}");
}

/// Waits idly, which uses almost no CPU, and returns the CPU time used.
async fn idle(fabric: Fabric, millis: u64) -> ProgramResult<u64> {
    let region = fabric.alloc_symmetric(8).await?;
    let mine: LocalWord<u64> = region.word(&fabric, 0)?;
    let before = thread_cpu_ns();
    let at = fabric.now() + Duration::from_millis(millis);
    // The wait depends on this rank only: the other may finish slightly earlier, which would end
    // the wait.
    let itself = Deps::One(fabric.rank());
    assert!(fabric.before(at, fabric.wait_until(&mine, itself, |seen| seen != 0)).await.is_none());
    assert!(fabric.now() >= at);
    Ok(thread_cpu_ns() - before)
}

/// Returns the CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn idle_ranks_use_little_cpu() {
    let used = threads(2).run(&async |fabric| idle(fabric, 500).await).unwrap();
    println!("CPU of 500 ms idle: {used:?} ns");
    assert!(used.iter().all(|&ns| ns < 50_000_000), "{used:?}");
}

#[test]
fn endpoints_and_their_futures_may_move_between_threads() {
    fn sync<T: Send + Sync>() {}
    fn send<T: Send>(_: T) {}
    sync::<rdma_fabric::Fabric>();
    sync::<rdma_fabric::Region>();
    fn check(fabric: &Fabric, region: &rdma_fabric::Region) -> Result<(), FabricError> {
        let cell = region.word::<u64>(fabric, 0)?;
        let there = cell.as_remote();
        send(fabric.fetch_add(&there, 1));
        send(fabric.put_word(&there, 1));
        send(fabric.put(&there.as_span(), vec![1]));
        send(fabric.get(&there.as_span(), [1]));
        send(fabric.put_notify(&there.as_span(), [1], 1));
        send(fabric.wait_until(&cell, Deps::All, |_| true));
        send(fabric.next_notice(Deps::All));
        send(fabric.alloc_symmetric(8));
        send(fabric.sleep(Duration::ZERO));
        send(fabric.room(None));
        send(Group::world(fabric));
        Ok(())
    }
    let _ = check;
}

/// Waits under another executor's waker.
async fn elsewhere(fabric: Fabric) -> ProgramResult<u64> {
    let region = other_executor(fabric.alloc_symmetric(8))?;
    let (mine, peer) = (region.word::<u64>(&fabric, 0)?, 1 - fabric.rank().number());
    other_executor(fabric.sleep(Duration::from_millis(20)));
    let there = fabric.remote_word::<u64>(word(peer, region.key(), 0))?;
    other_executor(fabric.put_notify(&there.as_span(), [7], 1))?;
    other_executor(fabric.next_notice(Deps::All))?;
    let seen = other_executor(fabric.wait_until(&mine, Deps::All, |seen| seen == 7))?;
    other_executor(Group::world(&fabric))?.barrier().await?;
    Ok(seen)
}

#[test]
fn waits_end_under_other_executors() {
    assert_eq!(threads(2).run(&elsewhere).unwrap(), [7, 7]);
}

#[test]
fn block_on_runs_foreign_futures() {
    let (sender, mut receiver) = (std::sync::Arc::new(std::sync::Mutex::new((false, None::<std::task::Waker>))), 0);
    let theirs = sender.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        let mut state = theirs.lock().unwrap();
        state.0 = true;
        state.1.take().unwrap().wake();
    });
    block_on(std::future::poll_fn(|cx| {
        let mut state = sender.lock().unwrap();
        receiver += 1;
        state.1 = Some(cx.waker().clone());
        if state.0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }));
    thread.join().unwrap();
    assert!(receiver > 1);
}
