//! Groups of the fabric over the virtual-time provider.

use crate::start::{NETWORKS, fx100};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Duration;

async fn all_of_them(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me() as u64);
    for root in 0..n {
        // No rank passes the barrier before the last one has arrived.
        fabric.compute(Duration::from_micros(me * 10)).await;
        let slowest = fabric.now().as_picos();
        world.barrier().await?;
        let times = world.allgather(slowest).await?;
        assert!(times.iter().all(|&t| t <= fabric.now().as_picos()));
        assert_eq!(world.broadcast(root, [me, 5]).await?, [root as u64, 5]);
        assert_eq!(world.allgather((me * me) as u32).await?, (0..n as u32).map(|i| i * i).collect::<Vec<_>>());
    }
    let mut part = world.split(Some(me % 3), n as u64 - me).await?.ok_or("everybody joins")?;
    let mut expected: Vec<u64> = (0..n as u64).filter(|i| i % 3 == me % 3).collect();
    expected.reverse();
    assert_eq!(part.allgather(me).await?, expected);
    part.barrier().await?;
    world.barrier().await?;
    Ok(())
}

#[test]
fn groups_of_1_to_9_ranks() {
    for n in 1..=9 {
        for network in NETWORKS {
            fx100(n).network(network).run(&all_of_them).unwrap_or_else(|error| panic!("{n} ranks: {error}"));
        }
    }
}

#[test]
fn groups_under_adversarial_schedules() {
    for seed in 0..40 {
        let job = fx100(5 + seed as usize % 4).ranks_per_node(1 + seed as u32 % 3).seed(seed);
        let job = job.jitter(Duration::from_micros(seed % 5)).shuffle_ties(true);
        job.run(&all_of_them).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
