//! A job of 4096 ranks: the holder dies, and so does the rank that recovers from that.

use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery},
};
use std::time::{Duration, Instant};
use tofu2_sim::virt::{Fault, FaultKind, Faults, Platform};

const RANKS: usize = 4096;
const HOME: Rank = Rank::new(0);
const HOLDS: u32 = 1000;
/// The rank that waits from the start, and therefore recovers.
const RECOVERS: u32 = 2000;
/// The rank that starts to wait just after the holder's death.
const FOLLOWS: u32 = 3000;
const DIES: Time = Time::from_picos(2_000_000_000);
const FOLLOWED: Duration = Duration::from_micros(5);
/// The time at which all other ranks start to read.
const READ: Duration = Duration::from_millis(80);
const END: Duration = Duration::from_millis(400);

/// Returns the time at which this rank entered.
async fn when_it_comes_in(fabric: Fabric) -> ProgramResult<Result<u64, String>> {
    Ok(comes_in(fabric).await.map_err(|error| error.to_string()))
}

async fn comes_in(fabric: Fabric) -> ProgramResult<u64> {
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(2)).await?;
    let came = match fabric.rank().number() {
        0 => {
            fabric.sleep_until(DIES + END).await;
            return Ok(0);
        }
        HOLDS => {
            let guard = lock.write().await?;
            fabric.sleep_until(DIES + END).await;
            guard.release().await?;
            return Ok(0);
        }
        writes @ (RECOVERS | FOLLOWS) => {
            let when = if writes == RECOVERS { Time::from_picos(DIES.as_picos() / 2) } else { DIES + FOLLOWED };
            fabric.sleep_until(when).await;
            let mut guard = match lock.write().await {
                Err(LockError::Torn { by }) if by.number() == HOLDS => lock.mend().await?,
                guard => guard?,
            };
            let came = fabric.now();
            guard.clear_torn().await?;
            guard.release().await?;
            came
        }
        _ => {
            fabric.sleep_until(DIES + READ).await;
            let guard = loop {
                match lock.read().await {
                    // Not mended yet.
                    Err(LockError::Torn { by }) if by.number() == HOLDS => fabric.sleep(READ).await,
                    guard => break guard?,
                }
            };
            let came = fabric.now();
            guard.release().await?;
            came
        }
    };
    Ok(came.as_picos())
}

/// Returns the time from the holder's death until a writer was inside, if the recovering rank dies
/// `after` that death, or stays alive.
fn run(after: Option<Duration>) -> Duration {
    let stop = |node, at| Fault { at, kind: FaultKind::NodeStop { node } };
    let stops = [Some(stop(HOLDS, DIES)), after.map(|after| stop(RECOVERS, DIES + after))];
    let faults = Faults::new(stops.into_iter().flatten().collect());
    let job = virtual_time(&Platform::fx100(), RANKS).faults(faults);
    let (run, _) = job.run_through(&when_it_comes_in).unwrap_or_else(|error| panic!("{after:?}: {error}"));
    let mut inside = u64::MAX;
    for (rank, out) in run.outs.iter().enumerate() {
        let dies = rank == HOLDS as usize || after.is_some() && rank == RECOVERS as usize;
        match out {
            Some(Ok(came)) if [RECOVERS, FOLLOWS].contains(&(rank as u32)) => inside = inside.min(*came),
            Some(Ok(_)) => {}
            None if dies => {}
            other => panic!("{after:?}: rank {rank} ended with {other:?}"),
        }
    }
    Duration::from_nanos((inside - DIES.as_picos()) / 1000)
}

#[test]
fn of_4096_ranks_the_recoverer_dies_too() {
    let begun = Instant::now();
    let alone = run(None);
    println!("{RANKS} ranks: a survivor is inside {alone:?} of virtual time after the holder's death");
    for eighth in [1, 3, 6] {
        let after = alone * eighth / 8;
        let inside = run(Some(after));
        println!("its recoverer dies {after:?} later: {inside:?}");
        assert!(inside > after && inside < 3 * alone);
    }
    println!("{:.1} s", begun.elapsed().as_secs_f64());
}
