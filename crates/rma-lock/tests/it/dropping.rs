//! Acquisitions that lose a race against time, in virtual time and between threads.

use checks::jobs::{threads, virtual_time};
use rdma_fabric::{
    Fabric, Group, ProgramResult, Rank,
    join::{Either, race},
    op::Nop,
};
use rma_lock::{
    Access, AccessLock, Guard, Lock, LockError, RmaLock, RwLock,
    locks::{BackOffLock, LockKind, RpLock, WindowLock},
};
use std::time::Duration;
use tofu2_sim::virt::Platform;

const HOME: Rank = Rank::new(0);
const ROUNDS: u32 = 40;

/// A dropped acquisition keeps its queue node until it would have been woken.
async fn wait_for_a_node(fabric: &Fabric, error: LockError) -> Result<(), LockError> {
    match error {
        LockError::TooManyWaiting { .. } => fabric.sleep(Duration::from_micros(5)).await,
        error => return Err(error),
    }
    Ok(())
}

/// Every rank tries repeatedly, as reader or writer, with so little patience that many acquisitions
/// are dropped while they wait; a rank that enters counts itself in a word that only the lock
/// protects. Returns the number of writes of this rank and the number of races that it lost.
async fn impatient(fabric: Fabric, kind: LockKind, patience: Duration, stay: Duration) -> ProgramResult<(u64, u64)> {
    let mut world = Group::world(&fabric).await?;
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let count = fabric.remote_word::<u64>(region.at(HOME, 0))?;
    world.barrier().await?;
    let (mut wrote, mut dropped) = (0, 0);
    for round in 0..ROUNDS {
        let me = fabric.rank().number();
        let patience = patience * ((me + round) % 5);
        if (me + round).is_multiple_of(3) {
            match race(lock.read(), fabric.sleep(patience)).await {
                // Half of the guards are dropped instead of released.
                Either::First(Ok(guard)) if round % 2 == 0 => guard.release().await?,
                Either::First(Ok(guard)) => drop(guard),
                Either::First(Err(error)) => wait_for_a_node(&fabric, error).await?,
                Either::Second(()) => dropped += 1,
            }
            continue;
        }
        match race(lock.write(), fabric.sleep(patience)).await {
            Either::First(Ok(guard)) => {
                let old = fabric.get_word(&count).await?;
                fabric.sleep(stay).await;
                fabric.put_word(&count, old + 1).await?;
                wrote += 1;
                if round % 2 == 0 {
                    guard.release().await?;
                }
            }
            Either::First(Err(error)) => wait_for_a_node(&fabric, error).await?,
            Either::Second(()) => dropped += 1,
        }
    }
    // No trace is left: every rank can enter without a deadline.
    let guard = loop {
        match lock.write().await {
            Ok(guard) => break guard,
            Err(error) => wait_for_a_node(&fabric, error).await?,
        }
    };
    let old = fabric.get_word(&count).await?;
    fabric.put_word(&count, old + 1).await?;
    guard.release().await?;
    world.barrier().await?;
    let sum: u64 = world.allgather([wrote + 1]).await?.iter().map(|[wrote]| wrote).sum();
    let guard = lock.read().await?;
    assert_eq!(fabric.get_word(&count).await?, sum, "two were inside together");
    drop(guard);
    world.barrier().await?;
    Ok((wrote, dropped))
}

fn some_of_each(outs: &[(u64, u64)]) {
    assert!(outs.iter().any(|(wrote, _)| *wrote > 0) && outs.iter().any(|(_, dropped)| *dropped > 0), "{outs:?}");
}

#[test]
fn in_virtual_time() {
    for lock in LockKind::ALL {
        let program =
            async move |fabric| impatient(fabric, lock, Duration::from_micros(60), Duration::from_micros(1)).await;
        for seed in 0..20 {
            let job = virtual_time(&Platform::fx100(), 6).ranks_per_node(2).seed(seed).jitter(Duration::from_micros(1));
            let run = job.shuffle_ties(true).run(&program);
            some_of_each(&run.unwrap_or_else(|error| panic!("{lock}, seed {seed}: {error}")).outs);
        }
    }
}

#[test]
fn between_threads() {
    for lock in LockKind::ALL {
        let program =
            async move |fabric| impatient(fabric, lock, Duration::from_micros(40), Duration::from_micros(50)).await;
        some_of_each(&threads(6).ranks_per_node(3).run(&program).unwrap_or_else(|error| panic!("{lock}: {error}")));
    }
}

/// Compiled, not run: over shared memory all futures may move between the threads of a runtime, and
/// be spawned with a lock that they own.
#[allow(dead_code, reason = "the compiler is the test")]
fn futures_over_shared_memory_are_send(queues: RpLock, backs_off: BackOffLock, window: WindowLock) {
    fn send(_: &impl Send) {}
    send(&queues.read());
    send(&queues.write());
    send(&queues.try_read());
    send(&queues.try_write());
    send(&backs_off.read());
    send(&backs_off.try_write());
    fn spawn(_: impl Future<Output = Result<(), LockError>> + Send + 'static) {}
    spawn(async move {
        queues.read().await?.release().await?;
        queues.write().await?.release().await?;
        backs_off.read().await?.release().await?;
        backs_off.write().await?.release().await?;
        window.lock(Access::All).await?.release().await
    });
}

/// Acquisitions that are dropped before they have posted an operation, because the rank's queue has
/// no room, leave everything unchanged.
async fn without_room(fabric: Fabric, kind: LockKind) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
    world.barrier().await?;
    if fabric.rank() != HOME {
        for round in 0..6 {
            let mut nops = Vec::new();
            while let Ok(nop) = fabric.try_post(Nop) {
                nops.push(nop);
            }
            assert!(!nops.is_empty(), "round {round}");
            if round % 2 == 0 {
                assert!(fabric.before(fabric.now(), lock.write()).await.is_none(), "round {round}: there was room");
            } else {
                assert!(fabric.before(fabric.now(), lock.try_write()).await.is_none(), "round {round}: there was room");
            }
            for nop in nops {
                nop.await?;
            }
        }
        lock.write().await?.release().await?;
        lock.read().await?.release().await?;
    }
    world.barrier().await?;
    Ok(())
}

#[test]
fn what_was_not_posted_costs_nothing() {
    for lock in LockKind::ALL {
        let job = virtual_time(&Platform::fx100(), 2).ranks_per_node(1);
        job.run(&async |fabric| without_room(fabric, lock).await).unwrap_or_else(|error| panic!("{lock}: {error}"));
    }
}
