//! A rank that aborts ends all ranks, whatever they do. This program is the launcher
//! (`aborted <ranks>`), which runs it as all ranks (`aborts`).

use crate::children::{end, start};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};
use tofu2_sim::{
    JobError,
    shm::{Launcher, from_env, run_rank},
};

/// The message to the job's ranks.
const TEXT: &str = "no more input\nthan this";

/// Runs as the launcher. It would wait for hours for ranks that only fail, and never looks for
/// deadlocks, so only the abort can end the job.
pub(crate) fn launch(ranks: &str) -> ExitCode {
    let own = std::env::current_exe().expect("own path");
    let launcher = Launcher::new(ranks.parse().expect("a number")).segment_bytes(1 << 20);
    let hours = Duration::from_secs(7200);
    let began = Instant::now();
    let ended = launcher.grace(hours).stuck_after(None).command(own, ["aborts"]).run();
    println!("took {}", began.elapsed().as_millis());
    match ended {
        Err(error @ JobError::Aborted { .. }) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
        other => panic!("{other:?}"),
    }
}

/// Runs as a rank: 0 aborts, and then continues forever; 1 spins and never calls the fabric; 2
/// sleeps in a system call; the others wait, one of them forever.
pub(crate) fn rank() -> ExitCode {
    println!("pid {}", std::process::id());
    let fabric = from_env().expect("a rank").expect("a job");
    match run_rank(fabric, &part) {
        Err(JobError::RankFailed { error, .. }) => println!("received {error}"),
        other => panic!("{other:?}"),
    }
    ExitCode::from(9)
}

async fn part(fabric: Fabric) -> ProgramResult<()> {
    let words = fabric.alloc_symmetric(8).await?;
    let own = words.word::<u64>(&fabric, 0)?;
    let first = fabric.remote_word::<u64>(words.at(Rank::new(0), 0))?;
    fabric.fetch_add(&first, 1).await?;
    match fabric.rank().number() {
        0 => {
            fabric.wait_until(&own, Deps::All, |here| here == fabric.ranks() as u64).await?;
            let Err(error) = fabric.abort(TEXT, 42);
            assert_eq!(error, FabricError::Aborted { rank: Rank::new(0), code: 42 });
            loop {
                std::hint::spin_loop();
            }
        }
        1 => loop {
            std::hint::spin_loop();
        },
        2 => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        _ => drop(fabric.wait_until(&own, Deps::One(Rank::new(0)), |v| v == 1).await?),
    }
    Ok(())
}

pub(crate) fn an_abort_ends_ranks_that_make_no_call() {
    let ended = end(start(&["aborted", "5"], &[]));
    assert_eq!(ended.code(), Some(42), "{}", ended.err);
    assert_eq!(ended.err.matches(TEXT).count(), 1, "reported once: {}", ended.err);
    assert!(ended.err.contains(&format!("error: rank 0 aborted the job with code 42: {TEXT}\n")), "{}", ended.err);
    // Waiting ranks receive the error, unless they were killed before they could print it.
    let received: Vec<_> = ended.out.lines().filter(|line| line.starts_with("received")).collect();
    assert!(received.iter().all(|line| *line == "received rank 0 aborted the job with code 42"), "{received:?}");
    assert!(ended.err.contains("killed by signal 9 (SIGKILL), which the launcher sent"), "{}", ended.err);
    // A guard against hanging, ten times the usual time: start, half a second of grace, end.
    let took = ended.out.lines().find_map(|line| line.strip_prefix("took ")?.parse().ok());
    assert!(took.is_some_and(|millis: u64| (500..10_000).contains(&millis)), "{}", ended.out);
}
