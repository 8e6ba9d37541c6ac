//! Hardware barriers by colour, for networks that have them.

use super::{
    loss_point::{LossPoint, notice_the_loss, only_the_loss, victim},
    world_and_region,
};
use crate::{Loss, ensure, ensure_eq};
use fabric_offload::barrier::{ColourBarrier, ColourError};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, Result, join::race};
use std::time::Duration;

/// Returns whether this network lacks hardware barriers. [`colours_are_there_or_refused`] checks
/// that such a network reports this.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    Ok(ColourBarrier::colours(fabric) == 0)
}

/// Returns the hardware barrier's error in a result, if any.
fn colour_error<T>(end: &Result<T>) -> Option<&ColourError> {
    match end {
        Err(FabricError::Colour(error)) => Some(error),
        _ => None,
    }
}

/// Returns the numbers of ranks for which the members of a world certainly fill a box.
fn fills_a_line(fabric: &Fabric) -> bool {
    fabric.facts().node_count() == fabric.ranks() && fabric.ranks() <= 3
}

pub(super) async fn colours_are_there_or_refused(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let colours = ColourBarrier::colours(&fabric);
    let claimed = ColourBarrier::claim(&mut world, colours).await;
    match colours {
        0 => ensure!(
            matches!(claimed, Err(FabricError::Unsupported { .. })),
            "C1: a colour where there are none: {claimed:?}"
        ),
        _ => ensure_eq!(
            colour_error(&claimed),
            Some(&ColourError::NoSuchColour { colour: colours, colours }),
            "C1: one colour more than there are"
        ),
    }
    Ok(world.barrier().await?)
}

/// A colour is claimed by all members or by none, and can be claimed again.
pub(super) async fn colours_are_claimed_together(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let me = world.me();
    if fabric.facts().node_count() < fabric.ranks() {
        let claimed = ColourBarrier::claim(&mut world, 0).await;
        ensure!(matches!(colour_error(&claimed), Some(ColourError::SharedNode { .. })), "C3: {claimed:?}");
        return Ok(world.barrier().await?);
    }
    // The first and the last of three or more are not next to each other; alone, each is a box.
    if world.len() > 2 {
        let ends = world.split((me == 0 || me + 1 == world.len()).then_some(0), 0).await?;
        if let Some(mut ends) = ends
            && world.len() == 3
        {
            let claimed = ColourBarrier::claim(&mut ends, 0).await;
            ensure_eq!(colour_error(&claimed), Some(&ColourError::NoBox { members: 2 }), "C3: two ends of a line");
        }
    }
    let Some(mut alone) = world.split(Some(me as u64), 0).await? else { return Err("C2: no group of one".into()) };
    let all: Vec<u32> = (0..ColourBarrier::colours(&fabric)).collect();
    let mut mine = Vec::new();
    for &colour in &all {
        let barrier = ColourBarrier::claim(&mut alone, colour).await?;
        ensure_eq!(barrier.colour(), colour, "C2: the colour asked for");
        mine.push(barrier);
    }
    // Only the last member gives its colour 0 back, so the claims of the others are still in the
    // way.
    if me + 1 == world.len() {
        drop(mine.remove(0));
    }
    if fills_a_line(&fabric) && world.len() > 1 {
        for _ in 0..2 {
            let claimed = ColourBarrier::claim(&mut world, 0).await;
            let told = matches!(colour_error(&claimed), Some(ColourError::Taken { colour: 0, rank }) if rank.index() + 1 < world.len());
            ensure!(told, "C2: {claimed:?}");
        }
        // The last member did not get it, either.
        if me + 1 == world.len() {
            mine.push(ColourBarrier::claim(&mut alone, 0).await?);
        }
        let differs = ColourBarrier::claim(&mut world, u32::from(me > 0)).await;
        ensure!(matches!(colour_error(&differs), Some(ColourError::Disagreement { .. })), "C2: {differs:?}");
        drop(mine);
        world.barrier().await?;
        drop(ColourBarrier::claim(&mut world, 0).await?);
        world.barrier().await?;
        drop(ColourBarrier::claim(&mut world, 0).await?);
    }
    Ok(world.barrier().await?)
}

/// No member leaves before all have arrived, round after round, with members late in turn.
pub(super) async fn colours_separate(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8 * fabric.ranks()).await?;
    if fabric.ranks() > 1 && !fills_a_line(&fabric) {
        return Ok(world.barrier().await?);
    }
    let all = fabric.remote_span::<u64>(region.at(Rank::new(0), 0), fabric.ranks())?;
    let mine = fabric.remote_word::<u64>(region.at(Rank::new(0), 8 * world.me() as u64))?;
    let mut barrier = ColourBarrier::claim(&mut world, ColourBarrier::colours(&fabric) - 1).await?;
    let mut other = ColourBarrier::claim(&mut world, 0).await?;
    let idle = barrier.wait().await;
    ensure!(matches!(colour_error(&idle), Some(ColourError::Idle(_))), "C4: {idle:?}");
    for round in 0..20 {
        if (world.me() as u64 + round).is_multiple_of(world.len() as u64) {
            fabric.sleep(Duration::from_micros(30)).await;
        }
        fabric.put_word(&mine, round + 1).await?;
        fabric.flush(Rank::new(0)).await?;
        barrier.start()?;
        let again = barrier.start();
        ensure!(matches!(colour_error(&again), Some(ColourError::Outstanding(_))), "C4: {again:?}");
        if round % 3 == 0 {
            // A dropped wait leaves the barrier in progress; another colour has separate rounds.
            let _ = race(barrier.wait(), async {}).await;
            other.start()?;
            other.wait().await?;
        }
        if round % 3 != 0 || barrier.start().is_err() {
            barrier.wait().await?;
        }
        let arrived = fabric.get(&all, vec![0; fabric.ranks()]).await?;
        // A member may be in the next round already, but no further.
        ensure!(arrived.iter().all(|&at| at == round + 1 || at == round + 2), "C4: {arrived:?} after round {round}");
    }
    Ok(world.barrier().await?)
}

/// A member that gives its colour back ends the others' barrier.
pub(super) async fn colours_given_back_end_it(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    if !fills_a_line(&fabric) {
        return Ok(world.barrier().await?);
    }
    let mut barrier = ColourBarrier::claim(&mut world, 0).await?;
    let last = victim(&fabric);
    if fabric.rank() == last {
        fabric.sleep(Duration::from_micros(50)).await;
        drop(barrier);
    } else {
        barrier.start()?;
        let end = barrier.wait().await;
        ensure_eq!(colour_error(&end), Some(&ColourError::Freed { colour: 0, rank: last }), "C5");
    }
    Ok(world.barrier().await?)
}

/// A barrier that the lost rank does not enter ends with the loss.
pub(super) async fn colours_end_with_a_loss(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    if is_missing(&fabric)? || !fills_a_line(&fabric) {
        return only_the_loss(&fabric, loss).await;
    }
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let last = victim(&fabric);
    let mut barrier = ColourBarrier::claim(&mut world, 0).await?;
    barrier.start()?;
    barrier.wait().await?;
    if fabric.rank() == last {
        point.others_ready().await?;
        return loss.happen();
    }
    point.ready().await?;
    barrier.start()?;
    let end = barrier.wait().await;
    let told = match colour_error(&end) {
        // A rank that is not killed gives its colours back just before it is lost.
        Some(ColourError::Freed { rank, .. }) => loss != Loss::Kill && *rank == last,
        _ => end == Err(FabricError::PeerLost { rank: last }),
    };
    ensure!(told, "C6: {end:?}");
    // No rank gives its colour back before all others have seen the loss.
    notice_the_loss(&fabric).await?;
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(())
}
