//! The limits of a lock's recovery, ranks that are not affected, and suspicion.

use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery, Torn},
};
use std::time::Duration;
use tofu2_sim::virt::{Fault, FaultKind, Faults, Platform};

const HOME: Rank = Rank::new(0);
const LATE: Duration = Duration::from_millis(2);

fn at(micros: u64) -> Time {
    Time::from_picos(micros * 1_000_000)
}

/// Returns the final report of each live rank; `stops` are nodes and the microseconds at which they
/// stop.
fn run(ranks: usize, scene: Scene, stops: &[(u32, u64)]) -> Vec<Option<String>> {
    let stop = |(node, micros): &(u32, u64)| Fault { at: at(*micros), kind: FaultKind::NodeStop { node: *node } };
    let job = virtual_time(&Platform::fx100(), ranks).faults(Faults::new(stops.iter().map(stop).collect()));
    let (run, failure) = job.run_through(&async |fabric| scenes(fabric, scene).await).expect("a run");
    let failed = run.outs.iter().filter(|out| out.is_none()).count();
    assert_eq!(failed, stops.len(), "{scene:?}: {failure:?}");
    run.outs
}

#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Survivors write until an error, with a lock that survives this number of deaths.
    Writes(Recovery),
    /// Survivors write as in [`Scene::Writes`], in a group of all but the last rank.
    InGroup,
    Suspicion,
    /// The lock is made with these limits and used once.
    Made(Recovery),
}

async fn scenes(fabric: Fabric, scene: Scene) -> ProgramResult<String> {
    match scene {
        Scene::Writes(recovery) => {
            let lock = RecoverableLock::symmetric_with(&fabric, HOME, recovery).await?;
            writes(&fabric, &lock).await
        }
        Scene::InGroup => in_group(&fabric).await,
        Scene::Suspicion => suspicion(&fabric).await,
        Scene::Made(recovery) => match RecoverableLock::symmetric_with(&fabric, HOME, recovery).await {
            Ok(lock) => {
                lock.write().await?.release().await?;
                fabric.sleep_until(at(1000)).await;
                Ok("made".into())
            }
            Err(error) => Ok(format!("{error:?}")),
        },
    }
}

async fn writes(fabric: &Fabric, lock: &RecoverableLock) -> ProgramResult<String> {
    let mut said = String::new();
    while fabric.now() < at(1000) {
        let guard = match lock.write().await {
            Err(LockError::Torn { .. }) => lock.mend().await,
            guard => guard,
        };
        match guard {
            Ok(mut guard) => {
                let written = async {
                    guard.clear_torn().await?;
                    // Lets other ranks wait.
                    fabric.sleep(Duration::from_micros(20)).await;
                    guard.release().await
                };
                if let Err(error) = written.await {
                    said = format!("{error:?}");
                    break;
                }
            }
            Err(error) => {
                said = format!("{error:?}");
                break;
            }
        }
    }
    if said.is_empty() {
        said = format!("{lock:?}");
    }
    fabric.sleep_until(at(1000) + LATE).await;
    Ok(said)
}

async fn in_group(fabric: &Fabric) -> ProgramResult<String> {
    let last = fabric.rank().index() + 1 == fabric.ranks();
    let members = Group::world(fabric).await?.split((!last).then_some(0), 0).await?;
    let Some(mut members) = members else {
        fabric.sleep_until(at(1000)).await;
        return Ok(String::new());
    };
    let lock = RecoverableLock::in_group(&mut members, HOME, Recovery::of_deaths(1)).await?;
    writes(fabric, &lock).await
}

/// Rank 1 holds the lock; rank 2 suspects it.
async fn suspicion(fabric: &Fabric) -> ProgramResult<String> {
    let lock = RecoverableLock::symmetric(fabric, HOME).await?;
    match fabric.rank().number() {
        1 => {
            let guard = lock.write().await?;
            fabric.sleep_until(at(500)).await;
            guard.release().await?;
        }
        2 => {
            fabric.sleep_until(at(100)).await;
            lock.suspect(Rank::new(1)).await?;
            // The lock is not taken away from the holder.
            let deadline = at(300);
            assert!(fabric.before(deadline, lock.mend()).await.is_none(), "the suspect is still inside");
            fabric.sleep_until(at(700)).await;
            let by = Rank::new(1);
            assert!(matches!(lock.read().await, Err(LockError::Torn { by: told }) if told == by));
            assert!(matches!(lock.write().await, Err(LockError::Torn { by: told }) if told == by));
            assert!(matches!(lock.try_read().await, Err(LockError::Torn { by: told }) if told == by));
            assert!(matches!(lock.try_write().await, Err(LockError::Torn { by: told }) if told == by));
            let guard = lock.mend().await?;
            assert_eq!(guard.torn(), Some(Torn { by }));
            guard.release().await?;
            // The data remains torn until a rank clears the mark.
            let mut guard = lock.mend().await?;
            assert_eq!(guard.torn(), Some(Torn { by }));
            guard.clear_torn().await?;
            guard.release().await?;
            let guard = lock.write().await?;
            assert_eq!(guard.torn(), None);
            guard.release().await?;
            lock.read().await?.release().await?;
        }
        _ => fabric.sleep_until(at(1000)).await,
    }
    Ok(format!("{lock:?}"))
}

#[test]
fn suspicion_takes_nothing_from_anybody() {
    let said = run(3, Scene::Suspicion, &[]);
    assert!(said.iter().flatten().all(|lock| lock.contains("epoch 0")), "{said:?}");
}

#[test]
fn more_deaths_than_were_asked_for_are_told_to_all() {
    let told = |recovery: Recovery| {
        let (epochs, deaths) = (recovery.epochs as u32, recovery.deaths as u32);
        format!("{:?}", LockError::Unrecoverable { epochs, deaths })
    };
    let few = Recovery { epochs: 2, deaths: 4 };
    for recovery in [Recovery::of_deaths(1), few] {
        let said = run(5, Scene::Writes(recovery), &[(1, 200), (3, 500)]);
        for rank in [0, 2, 4] {
            assert_eq!(said[rank].as_deref(), Some(told(recovery).as_str()), "rank {rank} with {recovery:?}");
        }
    }
    // Ranks that die together use up one epoch and two deaths.
    let said = run(5, Scene::Writes(few), &[(1, 200), (3, 200)]);
    assert!(said.iter().flatten().all(|lock| lock.contains("epoch 1")), "{said:?}");
    let one = Recovery::of_deaths(0);
    let said = run(3, Scene::Writes(one), &[(1, 200)]);
    assert!([0, 2].iter().all(|rank| said[*rank].as_deref() == Some(told(one).as_str())), "{said:?}");
}

#[test]
fn more_than_can_be_survived_is_refused() {
    for recovery in [Recovery::of_deaths(0), Recovery::of_deaths(255), Recovery { epochs: 256, deaths: 4095 }] {
        assert!(run(2, Scene::Made(recovery), &[]).iter().flatten().all(|said| said == "made"), "{recovery:?}");
    }
    let beyond = [(0, 1), (257, 256), (2, 4096), (usize::MAX, usize::MAX)];
    for (epochs, deaths) in beyond {
        let told = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let refused = format!("{:?}", LockError::RecoveryLimits { epochs: told(epochs), deaths: told(deaths) });
        let said = run(2, Scene::Made(Recovery { epochs, deaths }), &[]);
        assert_eq!(said, [Some(refused.clone()), Some(refused)], "{epochs} epochs, {deaths} deaths");
    }
}

#[test]
fn a_lost_home_is_told_to_all() {
    let lost = format!("{:?}", LockError::from(FabricError::PeerLost { rank: HOME }));
    let said = run(4, Scene::Writes(Recovery::of_deaths(3)), &[(0, 300)]);
    for (rank, said) in said.iter().enumerate().skip(1) {
        assert_eq!(said.as_deref(), Some(lost.as_str()), "rank {rank}");
    }
}

#[test]
fn a_group_is_not_concerned_with_others() {
    let said = run(4, Scene::InGroup, &[(3, 300)]);
    assert!(said[..3].iter().flatten().all(|lock| lock.contains("epoch 0")), "{said:?}");
    let said = run(4, Scene::InGroup, &[(3, 300), (1, 500)]);
    for rank in [0, 2] {
        assert!(said[rank].as_ref().is_some_and(|lock| lock.contains("epoch 1")), "{said:?}");
    }
}
