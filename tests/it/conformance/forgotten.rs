//! Checks that random latencies and ties detect a barrier that stops too early.

use crate::harness::Jittered;
use fabric_conformance::{CaseProgram, Harness, ensure_eq};
use rdma_fabric::{Deps, Fabric, ProgramResult, Rank, Region, Result};
use std::time::Duration;

/// The number of seeds after which the error counts as undetected.
const MOST: u64 = 400;

/// Runs a dissemination barrier that stops `forgotten` rounds too early.
async fn barrier(fabric: &Fabric, region: &Region, epoch: u64, forgotten: u32) -> Result<()> {
    let (n, me) = (fabric.ranks(), fabric.rank().index());
    for round in 0..n.next_power_of_two().trailing_zeros() - forgotten {
        let next = Rank::new(((me + (1 << round)) % n) as u32);
        let word = fabric.remote_word::<u64>(region.at(next, 8 * u64::from(round)))?;
        fabric.flush(next).await?;
        fabric.put_word(&word, epoch).await?;
        let mine = region.word::<u64>(fabric, 8 * round as usize)?;
        fabric.wait_until(&mine, Deps::All, |reached| reached >= epoch).await?;
    }
    Ok(())
}

/// Checks that no rank leaves the barrier before all have arrived.
async fn separated(fabric: Fabric, forgotten: u32) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8 * 8).await?;
    let counter = fabric.remote_word::<u64>(region.at(Rank::new(0), 56))?;
    let n = fabric.ranks() as u64;
    for round in 1..=3 {
        fabric.sleep(Duration::from_micros(u64::from(fabric.rank().number()))).await;
        fabric.fetch_add(&counter, 1).await?;
        barrier(&fabric, &region, 2 * round, forgotten).await?;
        ensure_eq!(fabric.get_word(&counter).await?, n * round, "arrivals before round {round} was over");
        barrier(&fabric, &region, 2 * round + 1, forgotten).await?;
    }
    Ok(())
}

/// Returns the error of the first seed that fails, if one of the first `most` does.
fn first_failure(ranks: usize, most: u64, forgotten: u32) -> Option<String> {
    let program = CaseProgram::silent(async move |fabric| separated(fabric, forgotten).await);
    let run = |seed| Jittered::<0, MOST>::run(&program, ranks, "a barrier that forgets a round", seed);
    (0..most).filter_map(run).find_map(|report| report.verdict.err())
}

#[test]
fn a_barrier_that_forgets_a_round() {
    for ranks in [4, 16] {
        assert_eq!(first_failure(ranks, 10, 0), None, "{ranks} ranks");
        let wrong = first_failure(ranks, MOST, 1);
        println!("{ranks} ranks: {}", wrong.expect("a barrier that forgets a round passes with all seeds"));
    }
}
