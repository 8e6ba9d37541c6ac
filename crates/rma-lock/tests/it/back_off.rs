//! The back-off locks in virtual time: their cost, their limits on attempts and time, and their
//! state after the loss of a rank.

use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use rma_lock::{
    Access, AccessLock, Guard, Lock, LockError, RmaLock,
    locks::{BackOff, BackOffLock, WindowLock},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tofu2_sim::virt::{Job, Platform};

const HOME: Rank = Rank::new(0);

fn fx100(ranks: usize) -> Job<'static> {
    virtual_time(&Platform::fx100(), ranks).ranks_per_node(1)
}

/// Returns the duration in picoseconds of an atomic on a word of the home, and of each access and
/// its release.
async fn pairs(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(region.at(HOME, 0))?;
    let lock = BackOffLock::symmetric(&fabric, HOME).await?;
    let window = WindowLock::symmetric(&fabric, HOME).await?;
    let mut world = Group::world(&fabric).await?;
    let mut took = Vec::new();
    if fabric.rank() != HOME {
        let mut since = fabric.now();
        let mut lap = || {
            let now = fabric.now();
            took.push(now.picos_since(since));
            since = now;
        };
        fabric.fetch_add(&word, 1).await?;
        lap();
        let guard = lock.write().await?;
        lap();
        guard.release().await?;
        lap();
        let guard = lock.read().await?;
        lap();
        guard.release().await?;
        lap();
        let guard = window.lock(Access::All).await?;
        lap();
        guard.release().await?;
        lap();
        let guard = window.lock(Access::Exclusive(HOME)).await?;
        lap();
        guard.release().await?;
        lap();
    }
    world.barrier().await?;
    Ok(took)
}

/// Apart from atomics, only the (empty) flush of a release may take time.
#[test]
fn a_free_lock_costs_its_atomics() {
    let outs = fx100(2).run(&pairs).unwrap().outs;
    let [atomic, ref accesses @ ..] = outs[1][..] else { panic!("{outs:?}") };
    let atomics = accesses.iter().map(|took| (*took as f64 / atomic as f64).round() as u64).collect::<Vec<_>>();
    assert_eq!(atomics, [1, 1, 1, 1, 1, 1, 2, 2], "in atomics of {atomic} ps: {accesses:?}");
}

/// One rank holds the lock for 100 µs while the others try to take it.
async fn besiege<L: RmaLock<Options = BackOff>>(fabric: Fabric, attempts: u32) -> ProgramResult<Vec<u64>> {
    let pace = BackOff { attempts, ..BackOff::default() };
    let lock = L::symmetric_with(&fabric, HOME, pace).await?;
    let mut world = Group::world(&fabric).await?;
    let held = if fabric.rank() == HOME { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    let begun = fabric.now();
    let mut seen = Vec::new();
    match held {
        Some(guard) => {
            fabric.sleep(Duration::from_micros(100)).await;
            guard.release().await?;
        }
        None if attempts < u32::MAX => {
            assert_eq!(lock.write().await.err(), Some(LockError::Contended { attempts }));
        }
        None => {
            assert!(lock.try_read().await?.is_none() && lock.try_write().await?.is_none());
            let deadline = begun + Duration::from_micros(50);
            assert_eq!(lock.read_before(deadline).await.err(), Some(LockError::TimedOut));
            seen.push(fabric.now().picos_since(deadline));
            let guard = lock.write().await?;
            seen.push(fabric.now().picos_since(begun));
            guard.release().await?;
        }
    }
    world.barrier().await?;
    Ok(seen)
}

async fn siege(fabric: Fabric, two_levels: bool, attempts: u32) -> ProgramResult<Vec<u64>> {
    match two_levels {
        false => besiege::<BackOffLock>(fabric, attempts).await,
        true => besiege::<WindowLock>(fabric, attempts).await,
    }
}

#[test]
fn deadlines_end_acquisitions() {
    for two_levels in [false, true] {
        let program = async move |fabric| siege(fabric, two_levels, u32::MAX).await;
        let run = || fx100(6).run(&program).unwrap().outs;
        let outs = run();
        assert_eq!(outs, run(), "the same job, another run");
        for late in outs[1..].iter().map(|seen| seen[0]) {
            // An attempt in flight at the deadline is completed and undone.
            assert!(late < 10_000_000, "{late} ps after the deadline");
        }
        let mut entered: Vec<_> = outs[1..].iter().map(|seen| seen[1]).collect();
        entered.sort_unstable();
        assert!(entered[0] >= 100_000_000, "inside together: {entered:?}");
        entered.dedup();
        assert_eq!(entered.len(), 5, "inside together: {entered:?}");
    }
}

#[test]
fn attempts_end_acquisitions() {
    for two_levels in [false, true] {
        fx100(4).run(&async |fabric| siege(fabric, two_levels, 3).await).unwrap();
    }
}

/// The result of a call at each rank that survived.
type Answers = Arc<Mutex<Vec<Option<LockError>>>>;

/// The last rank is lost: as the lock's holder if `holder`, otherwise as its home.
async fn bereft(fabric: Fabric, holder: bool, answers: Answers) -> ProgramResult<()> {
    let last = Rank::new(fabric.ranks() as u32 - 1);
    let lock = BackOffLock::symmetric(&fabric, if holder { HOME } else { last }).await?;
    let window = WindowLock::symmetric(&fabric, HOME).await?;
    let mut world = Group::world(&fabric).await?;
    let guard = if holder && fabric.rank() == last { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    if fabric.rank() == last {
        // The puts of its barrier arrive first.
        fabric.sleep(Duration::from_micros(100)).await;
        std::mem::forget(guard);
        return Err("lost".into());
    }
    fabric.sleep(Duration::from_millis(1)).await;
    let outcome = lock.write_before(fabric.now() + Duration::from_micros(300)).await.map(drop);
    let mut answered = vec![outcome.err()];
    if !holder {
        // Twice, to check that the attempt has left no trace.
        for _ in 0..2 {
            answered.push(window.try_lock(Access::Exclusive(last)).await.err());
        }
        // The attempt has left no trace at the home.
        answered.push(match window.lock_before(Access::All, fabric.now() + Duration::from_millis(1)).await {
            Ok(guard) => guard.release().await.err(),
            Err(error) => Some(error),
        });
    }
    answers.lock().unwrap().extend(answered);
    // The home's memory must outlive all its users.
    fabric.sleep(Duration::from_millis(5)).await;
    Ok(())
}

fn answers_of_survivors(holder: bool) -> Vec<Option<LockError>> {
    let answers = Answers::default();
    fx100(2).run(&async |fabric| bereft(fabric, holder, answers.clone()).await).expect_err("a rank is lost");
    std::mem::take(&mut *answers.lock().unwrap())
}

#[test]
fn a_lost_home_is_an_error() {
    let lost = || Some(LockError::from(FabricError::PeerLost { rank: Rank::new(1) }));
    assert_eq!(answers_of_survivors(false), [lost(), lost(), lost(), None]);
}

#[test]
fn a_lost_holder_is_waited_for_until_the_deadline() {
    assert_eq!(answers_of_survivors(true), [Some(LockError::TimedOut)]);
}
