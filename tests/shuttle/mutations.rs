//! What is broken is found: the same runs, with one thing wrong.

use crate::{
    fabric::Mutation,
    provider::{first_seed, run},
    suite::{groups, provider::Case, verdict::ensure_eq, waiting},
};
use rdma_fabric::{Deps, Fabric, Rank, Region, RegionAccess, Result, program};
use std::time::Duration;

/// Schedules after which a mutation counts as missed.
pub(crate) const MOST: u64 = 400;

/// What the first failing schedule said; `None` if there was none among `most`.
pub(crate) fn first_failure<P: Case>(ranks: usize, mutation: Mutation, most: u64, program: &P) -> Option<String> {
    let seed = first_seed();
    println!("SHUTTLE_SEED={seed}");
    (0..most).find_map(|turn| {
        let report = run(ranks, seed.wrapping_add(turn), mutation, program);
        let said = format!("after {turn} schedules: {:?}, {:?}", report.verdict, report.outcomes);
        report.verdict.is_err().then_some(said)
    })
}

/// A dissemination barrier that stops `forgotten` rounds too early.
async fn barrier<F: Fabric>(fabric: &F, region: &F::Region, epoch: u64, forgotten: u32) -> Result<()> {
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

program! {
    /// Nobody is through before everybody has come.
    async fn separated<F>(fabric: F, forgotten: u32) -> () {
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
}

#[test]
fn a_barrier_that_forgets_a_round() {
    for ranks in [4, 16] {
        let right = first_failure(ranks, Mutation::None, 10, &separated { forgotten: 0 });
        assert_eq!(right, None, "{ranks} ranks");
        let wrong = first_failure(ranks, Mutation::None, MOST, &separated { forgotten: 1 });
        println!("{ranks} ranks: {}", wrong.expect("a barrier that forgets a round passes all schedules"));
    }
}

#[test]
fn a_lost_wake_up() {
    let wrong = first_failure(4, Mutation::LostWakeUp, MOST, &waiting::every_writer_wakes {});
    let said = wrong.expect("a wait that loses wake-ups passes all schedules");
    assert!(said.contains("deadlock") || said.contains("lost"), "{said}");
    println!("{said}");
    let wrong = first_failure(16, Mutation::LostWakeUp, MOST, &groups::barriers_separate {});
    println!("{}", wrong.expect("a wait that loses wake-ups passes all barriers"));
}
