//! Late ranks: a second member under the number of one that has left, holds without a borrow, and
//! recoveries without a waiting rank.

use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, GroupMemory, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery, Room},
};
use std::time::Duration;
use tofu2_sim::virt::{Fault, FaultKind, Faults, Platform};

const HOME: Rank = Rank::new(0);
/// The rank that stops.
const GHOST: Rank = Rank::new(3);
const LIMITS: Recovery = Recovery { epochs: 4, deaths: 3 };
/// A time at which it has stopped, and all ranks know it.
const LATER: Time = Time::from_picos(3_000_000_000);

async fn program(fabric: Fabric) -> ProgramResult<u64> {
    let memory = GroupMemory::symmetric(&fabric, RecoverableLock::bytes(&LIMITS, 4) + 64).await?;
    let counter = fabric.remote_word::<u64>(memory.at(HOME, RecoverableLock::bytes(&LIMITS, 4) as u64)?)?;
    let add = async || -> ProgramResult<()> {
        let seen = fabric.get_word(&counter).await?;
        fabric.put_word(&counter, seen + 1).await?;
        Ok(())
    };
    let first = RecoverableLock::over(&fabric, memory.clone(), HOME, LIMITS)?;
    assert_eq!(first.room().await?, Room { epoch: 0, epochs: 3, deaths: 3 });
    if fabric.rank() == GHOST {
        // The rank is inactive, and dies.
        fabric.sleep_until(LATER + Duration::from_millis(50)).await;
        return Ok(0);
    }
    for _ in 0..5 {
        let held = first.write().await?.into_owned();
        add().await?;
        held.release().await?;
        let shared = first.read().await?.into_owned();
        drop(shared);
    }
    fabric.sleep_until(LATER).await;
    if fabric.rank() == Rank::new(1) {
        // No rank waits, so none has noticed.
        assert_eq!(first.room().await?.epoch, 0);
        first.recover_from(0, Time::MAX).await?;
    }
    fabric.sleep_until(LATER + Duration::from_millis(5)).await;
    assert_eq!(first.room().await?, Room { epoch: 1, epochs: 2, deaths: 2 });
    // Another member under the same number, as if the first one's process had ended.
    let last = first.epoch();
    assert!(last <= 1);
    let lock = if last == 0 {
        drop(first);
        RecoverableLock::over(&fabric, memory.clone(), HOME, LIMITS)?
    } else {
        first
    };
    assert_eq!(lock.join().await?, 1);
    for _ in 0..5 {
        let held = lock.write_before(LATER + Duration::from_millis(40)).await?.into_owned();
        assert_eq!(held.torn(), None);
        add().await?;
        held.release().await?;
    }
    // The recovery from this loss has already happened.
    lock.recover_from(0, Time::MAX).await?;
    assert_eq!(lock.room().await?.epoch, 1);
    match lock.mend_before(fabric.now() + Duration::from_millis(5)).await {
        Ok(guard) => guard.release().await?,
        Err(LockError::TimedOut) => {}
        Err(error) => return Err(error.into()),
    }
    fabric.sleep_until(LATER + Duration::from_millis(40)).await;
    Ok(fabric.get_word(&counter).await?)
}

#[test]
fn late_members_count_with_the_others() {
    let stop = Fault { at: Time::from_picos(2_000_000_000), kind: FaultKind::NodeStop { node: GHOST.number() } };
    let job = virtual_time(&Platform::fx100(), 4).faults(Faults::new(vec![stop]));
    let (run, failure) = job.run_through(&async |fabric| program(fabric).await).expect("a run");
    assert_eq!(run.outs, [Some(30), Some(30), Some(30), None], "{failure:?}");
}
