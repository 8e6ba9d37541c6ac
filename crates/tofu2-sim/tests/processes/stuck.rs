//! Deadlocked jobs of processes report the wait of each rank; other jobs are not affected. The
//! ranks run `waits <scenario>`.

use crate::{
    children::{end, start},
    helpers,
};
use rdma_fabric::{Deps, Fabric, ProgramResult, Rank};
use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};
use tofu2_sim::{
    JobError,
    shm::{Launcher, block_on, from_env, run_rank, run_rank_with},
};

/// Runs a scenario as two processes under a launcher with a short bound.
fn launch(scenario: &str) -> Result<i32, JobError> {
    let own = std::env::current_exe().expect("own path");
    let launcher = Launcher::new(2).segment_bytes(1 << 20).stuck_after(Some(Duration::from_millis(150)));
    launcher.discard_stdout(true).command(own, ["waits", scenario]).run()
}

/// Runs as a rank of [`launch`].
pub(crate) fn waiting_rank(scenario: &str) -> ExitCode {
    let fabric = from_env().expect("a rank").expect("a job");
    let ended = match scenario {
        "embrace" => run_rank(fabric, &embrace),
        "helpers" => run_rank(fabric, &helpers::both_wait),
        "computing" => run_rank(fabric, &computing),
        _ => run_rank(fabric, &stopped),
    };
    if let Err(error) = &ended {
        eprintln!("error: {error}");
    }
    ExitCode::from(u8::from(ended.is_err()))
}

/// Each rank waits for a write that the other never makes, as after a lost wake-up.
async fn embrace(fabric: Fabric) -> ProgramResult<()> {
    let flags = fabric.alloc_symmetric(64).await?;
    let other = Rank::new(1 - fabric.rank().number());
    let at = 8 * (2 + fabric.rank().index());
    fabric.wait_until(&flags.word::<u64>(&fabric, at)?, Deps::One(other), |flag| flag == 1).await?;
    Ok(())
}

pub(crate) fn a_deadlock_of_programs_and_helpers_is_reported() {
    let Err(JobError::Deadlock { waiting: 2, stuck, .. }) = launch("helpers") else { panic!("no deadlock") };
    assert!(stuck.iter().all(|stuck| stuck.others == 1), "{stuck:?}");
}

pub(crate) fn a_deadlock_of_processes_is_reported() {
    let begun = Instant::now();
    let Err(JobError::Deadlock { waiting: 2, first, stuck, .. }) = launch("embrace") else { panic!("no deadlock") };
    assert_eq!(first, Rank::new(0));
    assert!(begun.elapsed() < Duration::from_secs(8), "reported too late: {:?}", begun.elapsed());
    let want = [0, 1].map(|rank| {
        let (at, other) = (16 + 8 * rank, 1 - rank);
        format!("rank {rank} waits for rank {other} (the word at byte {at} of its region 0.1)")
    });
    assert_eq!(stuck.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
}

pub(crate) fn a_long_computation_is_no_deadlock() {
    assert_eq!(launch("computing").expect("no deadlock"), 0);
}

/// Rank 0 computes before it writes the word that rank 1 waits for, long enough for a false report.
async fn computing(fabric: Fabric) -> ProgramResult<()> {
    let words = fabric.alloc_symmetric(16).await?;
    if fabric.rank().number() == 0 {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(700) {}
        fabric.put_word(&fabric.remote_word::<u64>(words.at(Rank::new(1), 0))?, 1).await?;
    } else {
        fabric.wait_until(&words.word::<u64>(&fabric, 0)?, Deps::One(Rank::new(0)), |v| v == 1).await?;
    }
    Ok(())
}

pub(crate) fn a_stopped_process_is_no_deadlock() {
    assert_eq!(launch("stopped").expect("no deadlock"), 0);
}

/// Rank 1 waits and is stopped. Meanwhile rank 0 writes the word that rank 1 waits for, and then
/// waits for its answer.
async fn stopped(fabric: Fabric) -> ProgramResult<()> {
    let words = fabric.alloc_symmetric(8).await?;
    let mine = words.word::<u64>(&fabric, 0)?;
    let other = Rank::new(1 - fabric.rank().number());
    let theirs = fabric.remote_word::<u64>(words.at(other, 0))?;
    if fabric.rank().number() == 1 {
        let me = std::process::id();
        let script = format!("sleep 0.2; kill -STOP {me}; sleep 1; kill -CONT {me}");
        let mut stops = std::process::Command::new("sh").args(["-c", &script]).spawn()?;
        fabric.wait_until(&mine, Deps::One(other), |v| v == 1).await?;
        fabric.put_word(&theirs, 1).await?;
        stops.wait()?;
    } else {
        fabric.sleep(Duration::from_millis(500)).await;
        fabric.put_word(&theirs, 1).await?;
        fabric.wait_until(&mine, Deps::One(other), |v| v == 1).await?;
    }
    Ok(())
}

/// Ranks that do not run a [`rdma_fabric::Program`] can be stuck if they are the only thread of
/// their process.
pub(crate) fn a_rank_of_one_thread_can_be_stuck() {
    let ended = end(start(&["launch", "2", "stuck-alone"], &[]));
    assert_eq!(ended.code(), Some(99), "{}", ended.err);
    assert!(ended.err.contains("rank 1 waits for rank 1 (the word at byte 0 of its region 1024.1)"), "{}", ended.err);
    let ended = end(start(&["launch", "2", "stuck-helped"], &[]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

/// Runs as a rank of [`a_rank_of_one_thread_can_be_stuck`].
pub(crate) fn rank(endpoint: Fabric, helped: &str) -> ExitCode {
    // It does not run as a program, so the rank's other activities are unknown. It is either the
    // only thread or has another.
    if helped == "helped" {
        thread::spawn(|| thread::sleep(Duration::from_secs(60)));
    }
    let ended = run_rank_with(endpoint, |endpoint| {
        let memory = endpoint.alloc(8)?;
        let word = memory.word::<u64>(&endpoint, 0)?;
        let soon = Instant::now() + Duration::from_millis(1500);
        let wait = endpoint.wait_until(&word, Deps::One(endpoint.rank()), |_| Instant::now() > soon);
        Ok(block_on(wait).map(drop)?)
    });
    ended.map_or(ExitCode::from(1), |()| ExitCode::SUCCESS)
}
