//! Ranks that are processes and have helpers: killed, failing, waiting for each other. This program
//! is the launcher and all ranks (`rank helper-<scenario>`, `waits helpers`).

use crate::children::{end, start};
use process_tests::child::Ended;
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

fn launched(ranks: &str, scenario: &str) -> Ended {
    end(start(&["launch", ranks, scenario], &[]))
}

pub(crate) fn program_and_helper_play_ping_pong() {
    for ranks in ["2", "8"] {
        let ended = launched(ranks, "helper-ping-pong");
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert_eq!(ended.out.matches("done").count().to_string(), ranks);
    }
}

pub(crate) fn a_rank_killed_with_its_helper_is_lost() {
    for _ in 0..5 {
        let ended = launched("3", "helper-kill");
        assert_eq!(ended.code(), Some(137), "{}", ended.err);
        assert_eq!(ended.out.matches("rank 2 was lost").count(), 2, "{}", ended.out);
        assert!(ended.err.contains("rank 2: killed by signal 9 (SIGKILL)"), "{}", ended.err);
    }
}

pub(crate) fn a_helper_that_fails_fails_its_rank() {
    let ended = launched("3", "helper-fail");
    assert_eq!(ended.code(), Some(1), "{}", ended.err);
    assert_eq!(ended.out.matches("rank 2 was lost").count(), 2, "{}", ended.out);
    let message = "rank 2 failed: its helper `ordering` failed: on purpose";
    assert!(ended.err.contains(message), "{}", ended.err);
}

/// Runs as a rank.
pub(crate) async fn rank(fabric: &Fabric, scenario: &str) -> ProgramResult<u8> {
    let (mut world, region) = (Group::world(fabric).await?, Arc::new(fabric.alloc_symmetric(128).await?));
    let (last, shared) = (Rank::new(fabric.ranks() as u32 - 1), Arc::clone(&region));
    const ROUNDS: u64 = 2000;
    fabric.helper("ordering", move |fabric| answers(fabric, shared, ROUNDS))?;
    let rounds = if scenario == "helper-ping-pong" || fabric.rank() == last { ROUNDS } else { 10 };
    let (asked, answered) = (region.word::<u64>(fabric, 0)?, region.word::<u64>(fabric, 64)?);
    for round in 1..=rounds {
        fabric.store(&asked, round)?;
        fabric.wait_until(&answered, Deps::One(fabric.rank()), |it| it == round).await?;
        match scenario {
            "helper-kill" if fabric.rank() == last && round == 500 => {
                // While both play.
                thread::spawn(|| {
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                });
            }
            "helper-kill" if fabric.rank() == last && round == ROUNDS => thread::sleep(Duration::from_secs(60)),
            "helper-fail" if fabric.rank() == last && round == 500 => {
                fabric.helper("ordering", |_| async { Err("on purpose".into()) })?;
                let never = region.word::<u64>(fabric, 8)?;
                fabric.wait_until(&never, Deps::One(last), |it| it == 1).await?;
            }
            _ => {}
        }
    }
    if scenario == "helper-ping-pong" {
        println!("done {}", fabric.rank());
        world.barrier().await?;
        return Ok(0);
    }
    let begun = Instant::now();
    let end = fabric.wait_until(&region.word::<u64>(fabric, 8)?, Deps::One(last), |_| false).await;
    assert_eq!(end, Err(FabricError::PeerLost { rank: last }));
    assert!(begun.elapsed() < Duration::from_secs(10));
    println!("{last} was lost");
    Ok(5)
}

/// Answers each round written at 0 by the same round at 64.
async fn answers(fabric: Fabric, region: Arc<Region>, rounds: u64) -> ProgramResult<()> {
    let (asked, answered) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 64)?);
    for round in 1..=rounds {
        fabric.wait_until(&asked, Deps::One(fabric.rank()), |it| it == round).await?;
        fabric.store(&answered, round)?;
    }
    Ok(())
}

/// Program and helper wait for words that are never written.
pub(crate) async fn both_wait(fabric: Fabric) -> ProgramResult<()> {
    let region = Arc::new(fabric.alloc(128)?);
    fabric.helper("waits", {
        let region = Arc::clone(&region);
        move |fabric| answers(fabric, region, 1)
    })?;
    fabric.wait_until(&region.word::<u64>(&fabric, 64)?, Deps::One(fabric.rank()), |it| it == 1).await?;
    Ok(())
}
