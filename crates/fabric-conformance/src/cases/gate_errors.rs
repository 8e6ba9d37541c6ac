//! Misuse of the barrier unit, and the loss of a member.

pub(super) use super::gates::is_missing;
use super::gates::{SHAPES, rest};
use super::loss_point::{LossPoint, notice_the_loss, only_the_loss, victim};
use crate::{Loss, ensure, ensure_eq};
use fabric_offload::barrier::{
    Barrier, GateError, GateId, GateUnit, GraphShape, Progress, ReduceOp, Reduction, Values, Wiring,
};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Result};
use std::time::Duration;

/// Returns the gate error of an operation, if any.
pub(super) fn gate_error<T>(end: &Result<T>) -> Option<&GateError> {
    match end {
        Err(FabricError::Gate(error)) => Some(error),
        _ => None,
    }
}

/// Checks the misuse that a rank can detect alone.
pub(super) async fn gates_refuse_misuse(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let gates = GateUnit::of(&fabric).alloc(3)?;
    let [start, one, two] = gates.ids()[..] else { return Err("B1: three gates were asked for".into()) };
    ensure_eq!(gates.start(), start, "B1");
    ensure!([start, one, two].iter().all(|gate| gate.rank() == fabric.rank() && !gate.is_null()), "B1: {gates:?}");
    let refused = |wirings: &[Wiring], want: GateError| {
        let got = GateUnit::of(&fabric).set(wirings);
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
    ensure_eq!(GateUnit::of(&fabric).start(start, Values::BARRIER), Err(GateError::NotSet(start).into()), "B3");
    ensure_eq!(GateUnit::of(&fabric).start(one, Values::BARRIER), Err(GateError::NotStart(one).into()), "B4");
    ensure_eq!(GateUnit::of(&fabric).poll(start, Deps::All), Err(GateError::Idle(start).into()), "B4");
    // A chain of gates of this rank: start, one, two, end.
    let chain = |from: GateId, to: GateId, gate: GateId| Wiring {
        source_local: Some(from),
        destination_local: Some(to),
        ..Wiring::none(gate)
    };
    GateUnit::of(&fabric).set(&[chain(two, one, start), chain(start, two, one), chain(one, start, two)])?;
    let values = Values::new(ReduceOp::Max, &[5u64, 6])?;
    for _ in 0..5 {
        GateUnit::of(&fabric).start(start, values)?;
        let again = GateUnit::of(&fabric).start(start, values);
        ensure_eq!(again, Err(GateError::Outstanding(start).into()), "B4: two operations of one gate");
        let set = GateUnit::of(&fabric).set(&[chain(two, one, start)]);
        ensure_eq!(set, Err(GateError::Outstanding(start).into()), "B3: set while an operation is under way");
        ensure_eq!(GateUnit::of(&fabric).wait(start, Deps::All).await?, Some(values), "B5: a chain of own gates");
        ensure_eq!(GateUnit::of(&fabric).poll(start, Deps::All), Err(GateError::Idle(start).into()), "B4");
    }
    drop(gates);
    ensure_eq!(GateUnit::of(&fabric).start(start, values), Err(GateError::Freed(start).into()), "B2: a freed gate");
    ensure_eq!(GateUnit::of(&fabric).set(&[out]), Err(GateError::Freed(start).into()), "B2: a freed gate");
    let never = GateId::new(fabric.rank(), 4095, 1);
    ensure_eq!(GateUnit::of(&fabric).start(never, values), Err(GateError::NoSuchGate(never).into()), "B2");
    // A name is plain data.
    ensure_eq!(GateId::from_bits(start.to_bits()), start, "B2");
    // A gate without sources completes when its signal has been sent.
    let alone = GateUnit::of(&fabric).alloc(1)?;
    GateUnit::of(&fabric).set(&[Wiring::none(alone.start())])?;
    GateUnit::of(&fabric).start(alone.start(), values)?;
    let mut progress = GateUnit::of(&fabric).poll(alone.start(), Deps::All)?;
    while progress == Progress::NotCompleted {
        rest(&fabric).await;
        progress = GateUnit::of(&fabric).poll(alone.start(), Deps::All)?;
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
    let gates = GateUnit::of(&fabric).alloc(2)?;
    let (start, relay) = (gates.ids()[0], gates.ids()[1]);
    let all = two.allgather([start.to_bits(), relay.to_bits()]).await?;
    let other = all[1 - me].map(GateId::from_bits);
    // An exchange between two, as in recursive doubling, except that the second's relay gate names
    // itself as its remote source.
    let wrong = if me == 1 { relay } else { other[0] };
    GateUnit::of(&fabric).set(&[
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
    GateUnit::of(&fabric).start(start, Values::BARRIER)?;
    let end = GateUnit::of(&fabric).wait(start, Deps::All).await;
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
