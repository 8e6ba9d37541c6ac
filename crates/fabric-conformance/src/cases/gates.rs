//! The barrier unit, for providers that have one.

use super::{
    loss_point::{LossPoint, notice_the_loss, only_the_loss, victim},
    world_and_region,
};
use crate::{Loss, ensure, ensure_eq};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank, Result,
    barrier::{Barrier, GateError, GateId, GraphShape, Progress, ReduceOp, Reduction, ReductionTo, Values, Wiring},
};
use std::time::Duration;

const SHAPES: [GraphShape; 2] = [GraphShape::RecursiveDoubling, GraphShape::Ring];

/// A function that combines two values.
type Fold = fn(u64, u64) -> u64;

/// Returns whether this fabric lacks a barrier unit; checks that such a fabric reports this.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if fabric.gates().limits().start_gates > 0 {
        return Ok(false);
    }
    let refused = fabric.gates().alloc(1).err();
    ensure!(matches!(refused, Some(FabricError::Unsupported { .. })), "B1: gates where there are none: {refused:?}");
    Ok(true)
}

/// Returns the gate error of an operation, if any.
fn gate_error<T>(end: &Result<T>) -> Option<&GateError> {
    match end {
        Err(FabricError::Gate(error)) => Some(error),
        _ => None,
    }
}

/// Lets other ranks run, in real and in virtual time.
async fn rest(fabric: &Fabric) {
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
    let limits = fabric.gates().limits();
    let mut taken = Vec::new();
    let refused = loop {
        match fabric.gates().alloc(1) {
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
    let many = fabric.gates().alloc(limits.relay_gates + 2);
    ensure!(matches!(gate_error(&many), Some(GateError::NoGates { .. })), "B1: too many relay gates: {many:?}");
    let mut barrier = Barrier::new(&mut world).await?;
    barrier.start()?;
    barrier.wait().await?;
    Ok(world.barrier().await?)
}

/// Checks the misuse that a rank can detect alone.
pub(super) async fn gates_refuse_misuse(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let gates = fabric.gates().alloc(3)?;
    let [start, one, two] = gates.ids()[..] else { return Err("B1: three gates were asked for".into()) };
    ensure_eq!(gates.start(), start, "B1");
    ensure!([start, one, two].iter().all(|gate| gate.rank() == fabric.rank() && !gate.is_null()), "B1: {gates:?}");
    let refused = |wirings: &[Wiring], want: GateError| {
        let got = fabric.gates().set(wirings);
        if got == Err(want.clone().into()) { Ok(()) } else { Err(format!("B3: {got:?}, not {want:?}")) }
    };
    refused(&[Wiring::none(one)], GateError::Dangling(one))?;
    let out = Wiring { destination_local: Some(one), ..Wiring::none(start) };
    refused(&[out], GateError::PointsElsewhere { gate: one, by: start })?;
    let theirs = GateId::new(Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32), 0, 1);
    if fabric.ranks() > 1 {
        refused(
            &[Wiring { source_local: Some(theirs), ..Wiring::none(start) }],
            GateError::NotLocal { gate: start, other: theirs },
        )?;
        refused(&[Wiring::none(theirs)], GateError::NotOwn { gate: theirs, rank: fabric.rank() })?;
    }
    ensure_eq!(fabric.gates().start(start, Values::BARRIER), Err(GateError::NotSet(start).into()), "B3");
    ensure_eq!(fabric.gates().start(one, Values::BARRIER), Err(GateError::NotStart(one).into()), "B4");
    ensure_eq!(fabric.gates().poll(start, Deps::All), Err(GateError::Idle(start).into()), "B4");
    // A chain of gates of this rank: start, one, two, end.
    let chain = |from: GateId, to: GateId, gate: GateId| Wiring {
        source_local: Some(from),
        destination_local: Some(to),
        ..Wiring::none(gate)
    };
    fabric.gates().set(&[chain(two, one, start), chain(start, two, one), chain(one, start, two)])?;
    let values = Values::new(ReduceOp::Max, &[5u64, 6])?;
    for _ in 0..5 {
        fabric.gates().start(start, values)?;
        let again = fabric.gates().start(start, values);
        ensure_eq!(again, Err(GateError::Outstanding(start).into()), "B4: two operations of one gate");
        let set = fabric.gates().set(&[chain(two, one, start)]);
        ensure_eq!(set, Err(GateError::Outstanding(start).into()), "B3: set while an operation is under way");
        ensure_eq!(fabric.gates().wait(start, Deps::All).await?, Some(values), "B5: a chain of own gates");
        ensure_eq!(fabric.gates().poll(start, Deps::All), Err(GateError::Idle(start).into()), "B4");
    }
    drop(gates);
    ensure_eq!(fabric.gates().start(start, values), Err(GateError::Freed(start).into()), "B2: a freed gate");
    ensure_eq!(fabric.gates().set(&[out]), Err(GateError::Freed(start).into()), "B2: a freed gate");
    let never = GateId::new(fabric.rank(), 4095, 1);
    ensure_eq!(fabric.gates().start(never, values), Err(GateError::NoSuchGate(never).into()), "B2");
    // A name is plain data.
    ensure_eq!(GateId::from_bits(start.to_bits()), start, "B2");
    // A gate without sources completes when its signal has been sent.
    let alone = fabric.gates().alloc(1)?;
    fabric.gates().set(&[Wiring::none(alone.start())])?;
    fabric.gates().start(alone.start(), values)?;
    let mut progress = fabric.gates().poll(alone.start(), Deps::All)?;
    while progress == Progress::NotCompleted {
        rest(&fabric).await;
        progress = fabric.gates().poll(alone.start(), Deps::All)?;
    }
    ensure_eq!(progress, Progress::Completed(None), "B4: a gate without wires");
    Ok(world.barrier().await?)
}

/// If operations, types or counts differ, every member receives the error, none hangs, and the next
/// round succeeds.
pub(super) async fn gates_tell_mismatches(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    for shape in SHAPES {
        let mut integers = Reduction::<u64>::with_shape(&mut world, shape).await?;
        for odd in 0..n {
            integers.start(if me == odd { ReduceOp::Max } else { ReduceOp::Sum }, &[1])?;
            let end = integers.wait().await;
            let told = matches!(gate_error(&end), Some(GateError::Mismatch(_)));
            ensure!(told, "B10: operations differ at member {odd} of {n}, {shape:?}: {end:?}");
            integers.start(ReduceOp::Sum, &[1, 2][..1 + usize::from(me == odd)])?;
            let end = integers.wait().await;
            let told = matches!(gate_error(&end), Some(GateError::Mismatch(_)));
            ensure!(told, "B10: counts differ at member {odd} of {n}, {shape:?}: {end:?}");
            integers.start(ReduceOp::Sum, &[1])?;
            ensure_eq!(integers.wait().await?[0], n as u64, "B10: the round after, {shape:?}");
        }
    }
    // Members that request different shapes.
    let shape = SHAPES[usize::from(me == 0)];
    let end = Barrier::with_shape(&mut world, shape).await.err();
    ensure_eq!(end, Some(GateError::Disagreement.into()), "B10: shapes differ");
    Ok(world.barrier().await?)
}

/// Wrong connections and freed gates are reported to every member that depends on them.
pub(super) async fn gates_tell_wrong_wires(fabric: Fabric) -> ProgramResult<()> {
    // Ranks 2k and 2k + 1 form a pair; the latter connects its gates incorrectly.
    let mut world = Group::world(&fabric).await?;
    let mut two = world.split(Some(world.me() as u64 / 2), 0).await?.ok_or("everybody joins")?;
    let (me, wrong_rank) = (two.me(), Rank::new(fabric.rank().number() | 1));
    let gates = fabric.gates().alloc(2)?;
    let (start, relay) = (gates.ids()[0], gates.ids()[1]);
    let all = two.allgather([start.to_bits(), relay.to_bits()]).await?;
    let other = all[1 - me].map(GateId::from_bits);
    // An exchange between two, as in recursive doubling, except that the second's relay gate names
    // itself as its remote source.
    let wrong = if me == 1 { relay } else { other[0] };
    fabric.gates().set(&[
        Wiring {
            gate: start,
            source_local: Some(relay),
            destination_local: Some(relay),
            source_remote: None,
            destination_remote: Some(other[1]),
        },
        Wiring {
            gate: relay,
            source_local: Some(start),
            destination_local: Some(start),
            source_remote: Some(wrong),
            destination_remote: None,
        },
    ])?;
    two.barrier().await?;
    fabric.gates().start(start, Values::BARRIER)?;
    let end = fabric.gates().wait(start, Deps::All).await;
    let named = matches!(gate_error(&end), Some(GateError::PointsElsewhere { gate, .. }) if gate.rank() == wrong_rank);
    ensure!(named, "B11: at rank {me}: {end:?}");
    two.barrier().await?;
    // A peer that has freed its gates.
    let mut barrier = Barrier::new(&mut two).await?;
    barrier.start()?;
    barrier.wait().await?;
    two.barrier().await?;
    if me == 1 {
        drop(barrier);
    } else {
        barrier.start()?;
        let end = barrier.wait().await;
        let freed = matches!(gate_error(&end), Some(GateError::Freed(gate)) if gate.rank() == wrong_rank);
        ensure!(freed, "B11: a freed gate: {end:?}");
    }
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

/// A wave that the lost rank took part in may succeed; any other ends with the loss.
pub(super) async fn gates_end_with_a_loss(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    if is_missing(&fabric)? {
        return only_the_loss(&fabric, loss).await;
    }
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let last = victim(&fabric);
    let mut barrier = Barrier::new(&mut world).await?;
    let mut sum = Reduction::<u64>::with_shape(&mut world, GraphShape::Ring).await?;
    barrier.start()?;
    barrier.wait().await?;
    sum.start(ReduceOp::Sum, &[1])?;
    ensure_eq!(sum.wait().await?[0], fabric.ranks() as u64, "B12: before");
    if fabric.rank() == last {
        point.others_ready().await?;
        return loss.happen();
    }
    point.ready().await?;
    barrier.start()?;
    let first = barrier.wait().await;
    sum.start(ReduceOp::Sum, &[1])?;
    let second = loop {
        match sum.test() {
            Ok(None) => rest(&fabric).await,
            Ok(Some(sum)) => break Ok(sum[0]),
            Err(error) => break Err(error),
        }
    };
    for end in [first, second.map(drop)] {
        let told = match gate_error(&end) {
            // A rank that is not killed frees its gates just before it is lost.
            Some(GateError::Freed(gate)) => loss != Loss::Kill && gate.rank() == last,
            _ => end == Err(FabricError::PeerLost { rank: last }),
        };
        ensure!(told, "B12: {end:?}");
    }
    // No rank frees its gates before all others have seen the loss.
    notice_the_loss(&fabric).await?;
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(())
}
