//! The barrier unit, for providers that have one.

use super::gate_errors::gate_error;
use super::world_and_region;
use crate::{ensure, ensure_eq};
use fabric_offload::barrier::{Barrier, GateError, GateUnit, GraphShape, ReduceOp, Reduction, ReductionTo};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use std::time::Duration;

pub(super) const SHAPES: [GraphShape; 2] = [GraphShape::RecursiveDoubling, GraphShape::Ring];

/// A function that combines two values.
type Fold = fn(u64, u64) -> u64;

/// Returns whether this fabric lacks a barrier unit; checks that such a fabric reports this.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if GateUnit::of(fabric).limits().start_gates > 0 {
        return Ok(false);
    }
    let refused = GateUnit::of(fabric).alloc(1).err();
    ensure!(matches!(refused, Some(FabricError::Unsupported { .. })), "B1: gates where there are none: {refused:?}");
    Ok(true)
}

/// Lets other ranks run, in real and in virtual time.
pub(super) async fn rest(fabric: &Fabric) {
    fabric.sleep(Duration::from_micros(2)).await;
}

/// No member leaves before all have arrived, round after round, with members late in turn.
pub(super) async fn gates_separate(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let counter = fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?;
    let (n, me) = (world.len() as u64, world.me() as u64);
    for shape in SHAPES {
        let mut barrier = Barrier::with_shape(&mut world, shape).await?;
        let before = fabric.get_word(&counter).await?;
        world.barrier().await?;
        for round in 0..20 {
            if (me + round) % n == 0 {
                fabric.sleep(Duration::from_micros(20)).await;
            }
            fabric.fetch_add(&counter, 1).await?;
            barrier.start()?;
            if round % 2 == 0 {
                barrier.wait().await?;
            } else {
                while !barrier.test()? {
                    rest(&fabric).await;
                }
            }
            let come = fabric.get_word(&counter).await? - before;
            // A member may be in the next round already, but no further.
            ensure!(
                come >= n * (round + 1) && come <= n * (round + 2),
                "B6: {come} arrivals in round {round} of {shape:?}"
            );
        }
        world.barrier().await?;
    }
    Ok(())
}

/// Checks every operation, type and number of values in both shapes.
pub(super) async fn gates_reduce(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len() as u64, world.me() as u64);
    for shape in SHAPES {
        let mut integers = Reduction::<u64>::with_shape(&mut world, shape).await?;
        for round in 0..3u64 {
            for count in 1..=6usize {
                let mine: Vec<u64> = (0..count as u64).map(|i| 1 + me * 7 + i + round).collect();
                let all = |i: usize| (0..n).map(move |m| 1 + m * 7 + i as u64 + round);
                let want =
                    |f: fn(u64, u64) -> u64| (0..count).map(|i| all(i).reduce(f).unwrap_or(0)).collect::<Vec<_>>();
                let ops: [(ReduceOp, Fold); 5] = [
                    (ReduceOp::BitAnd, |a, b| a & b),
                    (ReduceOp::BitOr, |a, b| a | b),
                    (ReduceOp::BitXor, |a, b| a ^ b),
                    (ReduceOp::Max, u64::max),
                    (ReduceOp::Sum, u64::wrapping_add),
                ];
                for (op, f) in ops {
                    integers.start(op, &mine)?;
                    let got = integers.wait().await?;
                    ensure_eq!(&got[..], &want(f)[..], "B7: {op:?} of {count} values, {shape:?}");
                }
            }
            // Among equal values, the smallest location wins.
            integers.start(ReduceOp::MaxLoc, &[9, me + 3, me, me])?;
            ensure_eq!(&integers.wait().await?[..], &[9, 3, n - 1, n - 1], "B7: MaxLoc, {shape:?}");
            integers.start(ReduceOp::Sum, &[u64::MAX])?;
            ensure_eq!(integers.wait().await?[0], 0u64.wrapping_sub(n), "B7: sums wrap, {shape:?}");
        }
        let mut floats = Reduction::<f64>::with_shape(&mut world, shape).await?;
        floats.start(ReduceOp::Max, &[-(me as f64), 0.5])?;
        ensure_eq!(&floats.wait().await?[..], &[0.0, 0.5], "B7: Max of f64, {shape:?}");
    }
    Ok(world.barrier().await?)
}

/// Checks sums that lose all significant digits if they are rounded on the way; both shapes give
/// the same bits.
pub(super) async fn gates_sum_exactly(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    let mut bits = Vec::new();
    for shape in SHAPES {
        let mut floats = Reduction::<f64>::with_shape(&mut world, shape).await?;
        for big in 0..n {
            // The large values cancel and leave the tiny ones, no matter which members hold them.
            let value = match me {
                _ if me == big => 1e300,
                _ if me == (big + 1) % n => -1e300,
                _ => 1e-300,
            };
            floats.start(ReduceOp::BfpSum, &[value, 0.1, f64::from_bits(1)])?;
            let got = floats.wait().await?;
            let want = if n == 1 { 1e300 } else { (n - 2) as f64 * 1e-300 };
            ensure_eq!(got[0], want, "B8: {n} members, {shape:?}");
            ensure_eq!(got[2].to_bits(), n as u64, "B8: subnormals, {shape:?}");
            bits.push((got[0].to_bits(), got[1].to_bits()));
        }
        floats.start(ReduceOp::BfpSum, &[if me == 0 { f64::INFINITY } else { 1.0 }])?;
        ensure_eq!(floats.wait().await?[0], f64::INFINITY, "B8: an infinity");
        floats.start(ReduceOp::BfpSum, &[if me == 0 { f64::NAN } else { f64::INFINITY }])?;
        ensure_eq!(floats.wait().await?[0].to_bits(), 0x7ff8 << 48, "B8: a NaN");
    }
    let (one, other) = bits.split_at(n);
    ensure_eq!(one, other, "B8: both shapes");
    Ok(world.barrier().await?)
}

/// Each member is the owner once; the others may be ahead of it.
pub(super) async fn gates_reduce_to_an_owner(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    for owner in 0..n {
        let mut sum = ReductionTo::<u64>::new(&mut world, owner).await?;
        for round in 0..10u64 {
            if me == owner && round % 3 == 0 {
                fabric.sleep(Duration::from_micros(20)).await;
            }
            sum.start(ReduceOp::Sum, &[me as u64 + round, 1])?;
            let got = if round % 2 == 0 {
                sum.wait().await?
            } else {
                loop {
                    match sum.test()? {
                        Some(got) => break got,
                        None => rest(&fabric).await,
                    }
                }
            };
            ensure_eq!(got.is_some(), me == owner, "B9: who gets the result");
            if let Some(got) = got {
                let n = n as u64;
                ensure_eq!(&got[..], &[n * (n - 1) / 2 + n * round, n], "B9: round {round}, owner {owner}");
            }
        }
        world.barrier().await?;
    }
    let nobody = ReductionTo::<u64>::new(&mut world, n).await;
    ensure!(matches!(nobody, Err(FabricError::NoSuchRank { .. })), "B9: owner {n} of {n}: {nobody:?}");
    Ok(())
}

/// Gates of several objects and groups work at the same time, and dropping frees them.
pub(super) async fn gates_are_many(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    let mut half = world.split(Some(me as u64 % 2), 0).await?.ok_or("everybody joins")?;
    for turn in 0..40u64 {
        let mut all = Reduction::<u64>::new(&mut world).await?;
        let mut some = Reduction::<u64>::new(&mut half).await?;
        all.start(ReduceOp::Sum, &[turn])?;
        some.start(ReduceOp::Sum, &[1])?;
        ensure_eq!(some.wait().await?[0], half.len() as u64, "B6: the half, turn {turn}");
        ensure_eq!(all.wait().await?[0], n as u64 * turn, "B6: the whole, turn {turn}");
    }
    // Take gates until none are left; dropping them returns all of them.
    let limits = GateUnit::of(&fabric).limits();
    let mut taken = Vec::new();
    let refused = loop {
        match GateUnit::of(&fabric).alloc(1) {
            Ok(gates) => taken.push(gates),
            refused => break refused,
        }
    };
    let told = matches!(gate_error(&refused), Some(GateError::NoGates { rank, wanted: 1, starts: 0, .. }) if *rank == fabric.rank());
    ensure!(told, "B1: {refused:?}");
    ensure!(
        taken.len() <= limits.start_gates && (limits.ranks_per_unit > 1 || taken.len() == limits.start_gates),
        "B1: {} of {limits:?}",
        taken.len()
    );
    world.barrier().await?;
    let none = Barrier::new(&mut world).await;
    ensure!(matches!(gate_error(&none), Some(GateError::NoGates { .. })), "B1: a barrier without gates: {none:?}");
    drop(taken);
    world.barrier().await?;
    let many = GateUnit::of(&fabric).alloc(limits.relay_gates + 2);
    ensure!(matches!(gate_error(&many), Some(GateError::NoGates { .. })), "B1: too many relay gates: {many:?}");
    let mut barrier = Barrier::new(&mut world).await?;
    barrier.start()?;
    barrier.wait().await?;
    Ok(world.barrier().await?)
}

/// The unit works while the CPU computes between start and wait.
pub(super) async fn gates_need_no_cpu(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = Barrier::new(&mut world).await?;
    for _ in 0..10 {
        barrier.start()?;
        fabric.compute(Duration::from_micros(50)).await;
        barrier.wait().await?;
    }
    // Dropping a wait leaves the operation in progress.
    if world.me() == 0 {
        world.barrier().await?;
        barrier.start()?;
    } else {
        barrier.start()?;
        let soon = fabric.now() + Duration::from_micros(200);
        let ended = fabric.before(soon, barrier.wait()).await;
        if let Some(end) = ended {
            end?;
            return Err("B6: it ended without member 0".into());
        }
        world.barrier().await?;
    }
    barrier.wait().await?;
    Ok(world.barrier().await?)
}
