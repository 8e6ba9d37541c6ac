//! The locks with 4 and 16 ranks, too many for an exhaustive exploration: in random delivery
//! orders, as weak as the contract allows, and in virtual time with random latencies and ties.
//!
//! `SIXTEEN_SEED` reproduces a failure. Only sampled orders are tested.

use checks::jobs::virtual_time;
use checks::lock::NotFlushed;
use explore::{Explorer, Sample, mutant::mutated};
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank};
use rma_lock::{Lock, LockError, RwLock, locks::LockKind};
use std::{
    env,
    time::{Duration, SystemTime},
};
use tofu2_sim::virt::Platform;

const ROUNDS: u64 = 6;
/// The number of runs of each lock, with 4 ranks and with 16.
const RUNS: [(usize, u64); 2] = [(4, 25), (16, 3)];
const MORE: [(usize, u64); 2] = [(4, 100), (16, 10)];

/// Two words that writers change together and readers must find equal; a third counts the ranks
/// inside.
async fn pairs(fabric: Fabric, kind: LockKind) -> ProgramResult<()> {
    let home = Rank::new(0);
    let lock = RwLock::symmetric_with(&fabric, home, kind.into()).await?;
    let region = fabric.alloc_symmetric(24).await?;
    let mut world = Group::world(&fabric).await?;
    let at = |i: u64| fabric.remote_word::<u64>(region.at(home, 8 * i));
    let (a, b, inside) = (at(0)?, at(1)?, at(2)?);
    let mut wrote = 0u64;
    for round in 0..ROUNDS {
        let turn = (fabric.rank().number() as u64 + round) % 3;
        if turn == 1 {
            let guard = lock.read().await?;
            assert!(fabric.fetch_add(&inside, 1).await? < 1000, "a reader met a writer");
            let pair = (fabric.get_word(&a).await?, fabric.get_word(&b).await?);
            assert_eq!(pair.0, pair.1, "a reader saw half of what a writer wrote");
            fabric.fetch_add(&inside, 1u64.wrapping_neg()).await?;
            guard.release().await?;
            continue;
        }
        // Each direction changes a different word first.
        let (guard, [first, second]) = match turn {
            0 => (lock.write().await?, [&a, &b]),
            _ => match lock.write_before(fabric.now() + Duration::from_micros(1)).await {
                Err(LockError::TimedOut) => continue,
                guard => (guard?, [&b, &a]),
            },
        };
        assert_eq!(fabric.fetch_add(&inside, 1000).await?, 0, "a writer is not alone");
        let value = fabric.get_word(first).await?;
        fabric.put_word(first, value + 1).await?;
        fabric.put_word(second, value + 1).await?;
        fabric.fetch_add(&inside, 1000u64.wrapping_neg()).await?;
        guard.release().await?;
        wrote += 1;
    }
    let wrote: u64 = world.allgather(wrote).await?.into_iter().sum();
    assert_eq!(fabric.get_word(&a).await?, wrote, "writes that were not lost");
    // The home's words must live until all ranks have checked them.
    let done = fabric.remote_word::<u64>(region.at(home, 16))?;
    fabric.fetch_add(&done, 1).await?;
    if fabric.rank() == home {
        let all = fabric.ranks() as u64;
        fabric.wait_until(&region.word::<u64>(&fabric, 16)?, Deps::All, |count| count == all).await?;
    }
    world.barrier().await?;
    Ok(())
}

/// Returns the first seed.
fn first_seed() -> u64 {
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = env::var("SIXTEEN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    println!("SIXTEEN_SEED={seed}");
    seed
}

/// Samples random delivery orders, with two ranks per node.
fn sample<Fut>(ranks: usize, seed: u64, runs: u64, program: impl Fn(Fabric) -> Fut) -> Sample
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let nodes: Vec<u32> = (0..ranks as u32).map(|rank| rank / 2).collect();
    Explorer::new(ranks).nodes(&nodes).sample(seed, runs, program)
}

#[test]
fn in_random_delivery_orders() {
    sample_all(RUNS);
}

#[test]
#[ignore = "long: weekly"]
fn in_more_random_delivery_orders() {
    sample_all(MORE);
}

fn sample_all(runs: [(usize, u64); 2]) {
    let seed = first_seed();
    for (lock, (ranks, runs)) in LockKind::ALL.into_iter().flat_map(|lock| runs.map(|runs| (lock, runs))) {
        let sample = sample(ranks, seed, runs, move |fabric| pairs(fabric, lock));
        assert!(sample.failure.is_none(), "{lock}, {ranks} ranks: {sample}");
        println!("{lock}, {ranks} ranks: {sample}");
    }
}

#[test]
fn in_virtual_time() {
    simulate(RUNS);
}

#[test]
#[ignore = "long: weekly"]
fn in_virtual_time_from_more_seeds() {
    simulate(MORE);
}

fn simulate(runs: [(usize, u64); 2]) {
    let first = first_seed();
    for (lock, (ranks, runs)) in LockKind::ALL.into_iter().flat_map(|lock| runs.map(|runs| (lock, runs))) {
        for seed in (0..runs).map(|run| first.wrapping_add(run)) {
            let job =
                virtual_time(&Platform::fx100(), ranks).ranks_per_node(2).seed(seed).jitter(Duration::from_micros(3));
            let ended = job.shuffle_ties(true).run(&async |fabric| pairs(fabric, lock).await);
            ended.unwrap_or_else(|error| panic!("{lock}, {ranks} ranks, seed {seed}: {error}"));
        }
    }
}

#[test]
fn data_that_is_not_flushed_is_found() {
    let seed = first_seed();
    for (lock, ranks) in LockKind::ALL.into_iter().flat_map(|lock| [4, 16].map(|ranks| (lock, ranks))) {
        let program = move |fabric| pairs(mutated(fabric, NotFlushed), lock);
        let sample = sample(ranks, seed, 400, program);
        let found = sample.failure.unwrap_or_else(|| panic!("{lock}, {ranks} ranks: nothing in {}", sample.runs));
        println!("{lock}, {ranks} ranks: after {} runs {}", found.seed.wrapping_sub(seed), found.what);
    }
}
