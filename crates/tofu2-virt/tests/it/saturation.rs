//! Many clients of one word, for which the atomic unit is the bottleneck.

use crate::start::{NETWORKS, at, fx100, meet};
use rdma_fabric::{Fabric, ProgramResult};
use tofu2_virt::{Job, OpCounts};

pub(crate) async fn pairs(fabric: Fabric, pairs: u32) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64).await?;
    let word = fabric.remote_word::<u64>(at(0, home.key(), 0))?;
    for _ in 0..pairs {
        fabric.fetch_add(&word, 1).await?;
        fabric.fetch_add(&word, u64::MAX).await?;
    }
    let end = fabric.now().as_picos();
    meet(&fabric, &home, 16).await?;
    Ok(end)
}

fn slowest(job: &Job<'_>, pairs_each: u32) -> u64 {
    job.run(&async |fabric| pairs(fabric, pairs_each).await).unwrap().outs.into_iter().max().unwrap()
}

fn near(value: u64, expected: u64, percent: u64) {
    assert!(value.abs_diff(expected) * 100 <= expected * percent, "{value} is not within {percent} % of {expected}");
}

#[test]
fn service_bounds_128_clients() {
    for network in NETWORKS {
        let end = slowest(&fx100(128).network(network), 50);
        near(end, 50 * 2 * 128 * 269_500, 2);
    }
}

#[test]
fn four_clients_of_one_node_stay_below_saturation() {
    let end = slowest(&fx100(4).ranks_per_node(4), 50);
    near(end, 50 * 2 * 1_169_500, 2);
}

#[test]
fn four_engines_save_40_percent_over_loopback() {
    for network in NETWORKS {
        let job = |engines| fx100(32).ranks_per_node(32).network(network).receive_tnis(engines);
        let (one, four) = (slowest(&job(1), 50), slowest(&job(4), 50));
        near(one, 50 * 2 * 32 * 269_500, 3);
        // s (0.47 + 0.53 / 4)
        near(four, 50 * 2 * 32 * 162_373, 3);
    }
}

#[test]
fn operations_are_counted_per_rank() {
    let run = fx100(4).ranks_per_node(2).count_ops(true).run(&async |fabric| pairs(fabric, 3).await).unwrap();
    let by_rank: Vec<OpCounts> = run.ops_by_rank.unwrap();
    assert!(by_rank.iter().all(|ops| ops.atomics == 7));
    assert_eq!((by_rank[1].off_node, by_rank[2].off_node), (by_rank[1].puts.min(2), 7 + by_rank[2].puts.min(2)));
    assert_eq!(run.stats.ops.atomics, 28);
    assert_eq!(run.stats.ops.puts, 3);
}

/// Two adds by each rank, without a barrier at the end: rank 0 stays until the last has been
/// served.
async fn one_pair(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let word = fabric.remote_word::<u64>(at(0, home.key(), 0))?;
    fabric.fetch_add(&word, 1).await?;
    fabric.fetch_add(&word, 1).await?;
    if fabric.rank().number() == 0 {
        let own = fabric.local_word::<u64>(at(0, home.key(), 0))?;
        let all = 2 * fabric.ranks() as u64;
        fabric.wait_until(&own, Default::default(), |count| count == all).await?;
    }
    Ok(())
}

#[test]
fn a_rank_costs_less_than_a_kibibyte_and_an_atomic_three_events() {
    let run = fx100(20_000).ranks_per_node(8).run(&one_pair).unwrap();
    assert!(run.stats.bytes_per_rank <= 1024, "{}", run.stats.bytes_per_rank);
    assert_eq!(run.stats.events, 3 * 2 * 20_000);
}
