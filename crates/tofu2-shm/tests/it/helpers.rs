//! Helpers of ranks that are threads: wake-ups under load, failures, deadlocks, other executors.

use crate::other_executor;
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Region};
use std::{sync::Arc, thread, time::Duration};
use tofu2_shm::{HelperFailed, JobError, Threads};

/// Soon enough for a test.
const BOUND: Duration = Duration::from_millis(150);
/// Long enough for several false reports of a deadlock.
const LONG: Duration = Duration::from_millis(700);

fn threads(ranks: usize) -> Threads {
    checks::jobs::threads(ranks).segment_bytes(1 << 20).stuck_after(None)
}

/// Answers each round that arrives in the word at 0, by storing its number in the word at 64.
async fn answers(fabric: Fabric, region: Arc<Region>, rounds: u64) -> ProgramResult<()> {
    let (asked, answered) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 64)?);
    for round in 1..=rounds {
        fabric.wait_until(&asked, Deps::One(fabric.rank()), |it| it == round).await?;
        fabric.store(&answered, round)?;
    }
    Ok(())
}

/// Plays ping-pong with a helper.
async fn ping_pong(fabric: Fabric, rounds: u64) -> ProgramResult<()> {
    let region = Arc::new(fabric.alloc(128)?);
    let shared = Arc::clone(&region);
    fabric.helper("answers", move |fabric| answers(fabric, shared, rounds))?;
    let (asked, answered) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 64)?);
    for round in 1..=rounds {
        // Every hundredth round, the helper has parked by then.
        if round % 100 == 50 {
            thread::sleep(Duration::from_millis(2));
        }
        fabric.store(&asked, round)?;
        fabric.wait_until(&answered, Deps::One(fabric.rank()), |it| it == round).await?;
    }
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn program_and_helper_play_ping_pong() {
    for ranks in [1, 2, 8] {
        threads(ranks).run(&async |fabric| ping_pong(fabric, 3000).await).unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn they_play_under_another_executor() {
    threads(2).run_with(|fabric| other_executor(ping_pong(fabric, 1000))).unwrap();
}

/// A program that waits for its helper, which fails.
async fn waits_for_a_failing(fabric: Fabric, panics: bool) -> ProgramResult<()> {
    let region = fabric.alloc(8)?;
    fabric.helper("ordering", move |_| async move {
        thread::sleep(Duration::from_millis(20));
        assert!(!panics, "on purpose");
        Err("on purpose".into())
    })?;
    fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(fabric.rank()), |it| it == 1).await?;
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_failure_names_the_helper() {
    let failed = |panics| threads(1).run(&async |fabric| waits_for_a_failing(fabric, panics).await).unwrap_err();
    let error = failed(false);
    assert_eq!(error.to_string(), "rank 0 failed: its helper `ordering` failed: on purpose");
    let JobError::RankFailed { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.downcast_ref::<HelperFailed>().map(|failed| failed.name), Some("ordering"));
    assert_eq!(failed(true).to_string(), "rank 0 panicked: its helper `ordering` panicked: on purpose");
    let foreign = threads(2).run_with(|fabric| other_executor(waits_for_a_failing(fabric, false))).unwrap_err();
    assert!(foreign.to_string().ends_with("failed: its helper `ordering` failed: on purpose"), "{foreign}");
}

/// A program that ignores its helper's failure.
async fn heedless(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(8)?;
    fabric.helper("ordering", |_| async { Err("on purpose".into()) })?;
    let end = fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(fabric.rank()), |it| it == 1).await;
    assert_eq!(end, Err(FabricError::HelperFailed { rank: fabric.rank() }));
    Ok(())
}

#[test]
fn a_rank_is_lost_by_its_helper_whatever_its_program_returns() {
    let error = threads(1).run(&heedless).unwrap_err().to_string();
    assert_eq!(error, "rank 0 failed: its helper `ordering` failed: on purpose");
}

/// Panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn a_panic_at_the_end_counts() {
    let fragile = async |fabric: Fabric| {
        let region = Arc::new(fabric.alloc(8)?);
        let (started, shared) = (region.word::<u64>(&fabric, 0)?, Arc::clone(&region));
        fabric.helper("fragile", |fabric| async move {
            let _fragile = Fragile;
            fabric.store(&shared.word::<u64>(&fabric, 0)?, 1)?;
            std::future::pending().await
        })?;
        fabric.wait_until(&started, Deps::One(fabric.rank()), |started| started == 1).await?;
        Ok(())
    };
    let error = threads(1).run(&fragile).unwrap_err().to_string();
    assert_eq!(error, "rank 0 panicked: its helper `fragile` panicked: dropped");
}

#[test]
fn a_rank_that_has_ended_has_no_helpers() {
    let kept = threads(1).run(&async |fabric: Fabric| Ok(fabric)).unwrap();
    let refused = kept[0].helper("late", |_| async { Ok(()) });
    assert!(matches!(refused, Err(FabricError::Unsupported { .. })), "{refused:?}");
}

/// Program and helper wait for words that are never written; the helper is busy for `busy` first.
async fn both_wait(fabric: Fabric, busy: Duration, ends: bool) -> ProgramResult<()> {
    let region = Arc::new(fabric.alloc(128)?);
    let shared = Arc::clone(&region);
    fabric.helper("waits", move |fabric| async move {
        thread::sleep(busy);
        if ends {
            fabric.store(&shared.word::<u64>(&fabric, 0)?, 1)?;
        }
        fabric.wait_until(&shared.word::<u64>(&fabric, 64)?, Deps::One(fabric.rank()), |it| it == 1).await?;
        Ok(())
    })?;
    fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(fabric.rank()), |it| it == 1).await?;
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn program_and_helper_that_wait_for_each_other_are_told() {
    let stuck = threads(2).stuck_after(Some(BOUND));
    match stuck.run(&async |fabric| both_wait(fabric, Duration::ZERO, false).await) {
        Err(JobError::Deadlock { waiting: 2, first, stuck, .. }) => {
            assert_eq!((first, stuck.len()), (Rank::new(0), 2));
            assert!(stuck.iter().all(|stuck| stuck.others == 1), "{stuck:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_program_whose_helper_is_busy_is_not_stuck() {
    let stuck = threads(2).stuck_after(Some(BOUND));
    stuck.run(&async |fabric| both_wait(fabric, LONG, true).await).unwrap();
}
