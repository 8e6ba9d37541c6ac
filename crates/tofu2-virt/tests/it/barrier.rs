//! The barrier unit in virtual time: the time that barriers take, and that they need no CPU.

use crate::start::fx100;
use fabric_offload::barrier::{Barrier, GateUnit, GraphShape};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Duration;
use tofu2_virt::{Job, Platform};

/// Returns the time that the last of several barriers took on this rank, in picoseconds. All ranks
/// start at the same time.
async fn one_barrier(fabric: Fabric, shape: GraphShape) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = Barrier::with_shape(&mut world, shape).await?;
    let mut took = 0;
    for turn in 1..=3u64 {
        // All ranks begin at the same moment.
        fabric.sleep_until(rdma_fabric::Time::from_picos(turn * 10_000_000_000)).await;
        let begun = fabric.now();
        barrier.start()?;
        barrier.wait().await?;
        took = fabric.now().picos_since(begun);
    }
    Ok(took)
}

fn slowest(job: &Job<'_>, shape: GraphShape) -> u64 {
    let run = job.run(&async |fabric| one_barrier(fabric, shape).await).unwrap();
    run.outs.into_iter().max().unwrap()
}

#[test]
fn a_barrier_of_two_is_the_sum_of_its_parts() {
    // Posting, start half, wire, relay gate, end half, polling, regardless of the shape.
    let (post, gate, wire) = (150_000, 150_000, 260_000);
    assert_eq!(slowest(&fx100(2), GraphShape::RecursiveDoubling), post + gate + wire + gate + gate + post);
    // In a ring the signal travels there and back, through the owner's relay gate.
    assert_eq!(slowest(&fx100(2), GraphShape::Ring), post + gate + wire + gate + wire + gate + post);
    let slow = Platform::fx100().with("barrier_gate", 200_000).unwrap();
    assert_eq!(
        slowest(&checks::jobs::virtual_time(&slow, 2), GraphShape::RecursiveDoubling),
        post + wire + 3 * 200_000 + post
    );
}

#[test]
fn barriers_grow_with_the_logarithm() {
    println!("| ranks | recursive doubling, us | ring, us |\n|---|---|---|");
    let mut last = 0;
    for ranks in [2, 3, 4, 8, 16, 64, 256, 1024] {
        let time = slowest(&fx100(ranks), GraphShape::RecursiveDoubling);
        let ring = if ranks <= 64 {
            format!("{:.2}", slowest(&fx100(ranks), GraphShape::Ring) as f64 / 1e6)
        } else {
            "–".into()
        };
        println!("| {ranks} | {:.2} | {ring} |", time as f64 / 1e6);
        assert!(time >= last || !ranks.is_power_of_two(), "{ranks} ranks");
        // Each step costs a gate and a wire; a chain of neighbours would take hundreds of steps.
        assert!(time < 2_000_000 * u64::from(ranks.ilog2() + 2), "{ranks} ranks: {time} ps");
        last = time;
    }
}

/// Returns the time at which this rank finished computing, and the time at which the wait after
/// that ended.
async fn meanwhile(fabric: Fabric, busy: Duration) -> ProgramResult<(u64, u64)> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = Barrier::new(&mut world).await?;
    fabric.sleep_until(rdma_fabric::Time::from_picos(10_000_000_000)).await;
    barrier.start()?;
    fabric.compute(busy).await;
    let computed = fabric.now();
    barrier.wait().await?;
    Ok((computed.as_picos(), fabric.now().as_picos()))
}

#[test]
fn ranks_compute_while_the_unit_works() {
    for ranks in [2, 8, 13, 64] {
        let run = fx100(ranks).run(&async |fabric| meanwhile(fabric, Duration::from_micros(100)).await).unwrap();
        for (computed, waited) in run.outs {
            // 100 us after the 150 ns of starting, without a picosecond of waiting.
            assert_eq!((computed, waited), (10_100_150_000, 10_100_150_000), "{ranks} ranks");
        }
        let run = fx100(ranks).run(&async |fabric| meanwhile(fabric, Duration::ZERO).await).unwrap();
        assert!(run.outs.iter().all(|(computed, waited)| waited > computed), "{ranks} ranks: it takes time");
    }
}

#[test]
fn ranks_of_a_node_share_its_unit() {
    async fn limits(fabric: Fabric) -> ProgramResult<(usize, usize, usize, usize)> {
        let limits = GateUnit::of(&fabric).limits();
        let mut world = Group::world(&fabric).await?;
        let mut taken = Vec::new();
        while let Ok(gates) = GateUnit::of(&fabric).alloc(2) {
            taken.push(gates);
        }
        world.barrier().await?;
        Ok((limits.start_gates, limits.relay_gates, limits.ranks_per_unit, taken.len()))
    }
    let outs = |per_node| fx100(4).ranks_per_node(per_node).run(&limits).unwrap().outs;
    assert_eq!(outs(1), [(8, 56, 1, 8); 4]);
    let shared = outs(4);
    assert!(shared.iter().all(|out| (out.0, out.1, out.2) == (8, 56, 4)));
    assert_eq!(shared.iter().map(|out| out.3).sum::<usize>(), 8);
}
