//! A panic under a write guard tears the protected data, whether or not its rank dies from it.

use checks::jobs::{threads, virtual_time};
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery, Torn},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};
use tofu2_sim::virt::{Fault, FaultKind, Faults, Platform};

const HOME: Rank = Rank::new(0);
const PANICS: Rank = Rank::new(1);
const RANKS: usize = 3;

/// One rank panics while it writes, and dies from it if `dies`; each rank returns the number of
/// times that it found torn data.
async fn panicking(fabric: Fabric, dies: bool) -> ProgramResult<u64> {
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(1)).await?;
    let region = fabric.alloc_symmetric(24).await?;
    let word = |offset| fabric.remote_word::<u64>(region.at(HOME, offset));
    let (a, b, told) = (word(0)?, word(8)?, word(16)?);
    if fabric.rank() == PANICS {
        let guard = lock.write().await?;
        fabric.put_word(&a, 1).await?;
        fabric.put_word(&told, 1).await?;
        fabric.flush(HOME).await?;
        if dies {
            let _guard = guard;
            resume_unwind(Box::new("on purpose"));
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = guard;
            resume_unwind(Box::new("on purpose"));
        }));
        assert!(panicked.is_err());
    } else {
        // At this point the panicking rank holds the lock.
        while fabric.get_word(&told).await? == 0 {
            fabric.sleep(Duration::from_micros(50)).await;
        }
    }
    let (mut torn, mut whole) = (0, 0);
    for _ in 0..4 {
        match lock.read().await {
            Err(LockError::Torn { by }) => assert_eq!(by, PANICS),
            guard => {
                let guard = guard?;
                assert_eq!(fabric.get_word(&a).await?, fabric.get_word(&b).await?, "torn, and nobody told");
                whole += 1;
                guard.release().await?;
                continue;
            }
        }
        match lock.try_write().await {
            Err(LockError::Torn { by }) => assert_eq!(by, PANICS),
            Err(error) => return Err(error.into()),
            Ok(None) => {}
            Ok(Some(guard)) => guard.release().await?,
        }
        let mut guard = lock.mend().await?;
        if guard.torn() == Some(Torn { by: PANICS }) {
            torn += 1;
            let version = fabric.get_word(&a).await?;
            fabric.put_word(&b, version).await?;
            fabric.flush(HOME).await?;
            guard.clear_torn().await?;
            assert_eq!(guard.torn(), None);
        }
        guard.release().await?;
    }
    if fabric.rank() == HOME {
        fabric.sleep(Duration::from_millis(50)).await;
    }
    assert!(whole >= 1, "{} ends with a whole record", fabric.rank());
    Ok(torn)
}

#[test]
fn a_rank_that_catches_it_goes_on() {
    let torn = virtual_time(&Platform::fx100(), RANKS)
        .run(&async |fabric| panicking(fabric, false).await)
        .expect("a run")
        .outs;
    assert_eq!(torn.iter().sum::<u64>(), 1, "mended once: {torn:?}");
    let torn = threads(RANKS).run(&async |fabric| panicking(fabric, false).await).expect("a run");
    assert_eq!(torn.iter().sum::<u64>(), 1, "mended once: {torn:?}");
}

#[test]
fn a_rank_that_dies_of_it_leaves_torn_data() {
    let (run, failure) = virtual_time(&Platform::fx100(), RANKS)
        .run_through(&async |fabric| panicking(fabric, true).await)
        .expect("a run");
    assert!(failure.is_some() && run.outs[PANICS.index()].is_none());
    let survivors = [run.outs[0], run.outs[2]].map(|torn| torn.expect("a survivor ends well"));
    assert_eq!(survivors.iter().sum::<u64>(), 1, "mended once: {survivors:?}");
}

const MENDS: Rank = Rank::new(1);
const WAITS: Rank = Rank::new(2);
const DIES: u32 = 3;

/// One rank mends while another dies; returns the number of times that any rank found torn data
/// after that.
async fn mending(fabric: Fabric) -> ProgramResult<u64> {
    let at = |micros: u64| Time::from_picos(micros * 1_000_000);
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(1)).await?;
    match fabric.rank() {
        MENDS => {
            lock.suspect(MENDS).await?;
            let mut guard = lock.mend().await?;
            // At this point the next epoch is open, and torn like this one.
            fabric.sleep_until(at(500)).await;
            guard.clear_torn().await?;
            guard.release().await?;
        }
        WAITS => {
            fabric.sleep_until(at(100)).await;
            lock.mend().await?.release().await?;
        }
        _ => fabric.sleep_until(at(700)).await,
    }
    fabric.sleep_until(at(800)).await;
    let torn = match lock.read().await {
        Err(LockError::Torn { .. }) => 1,
        guard => guard?.release().await.map(|()| 0)?,
    };
    assert!(format!("{lock:?}").contains("epoch 1"), "{lock:?}");
    fabric.sleep_until(at(1000)).await;
    Ok(torn)
}

/// Mended data is consistent, even though the epoch was closed in the meantime.
#[test]
fn a_death_while_somebody_mends_tears_nothing() {
    let stop = Fault { at: Time::from_picos(300_000_000), kind: FaultKind::NodeStop { node: DIES } };
    let job = virtual_time(&Platform::fx100(), 4).faults(Faults::new(vec![stop]));
    let (run, _) = job.run_through(&mending).expect("a run");
    assert_eq!(run.outs, [Some(0), Some(0), Some(0), None]);
}
