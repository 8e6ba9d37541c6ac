//! Parts of resolved spans.

use super::{neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult};

/// Elements of the region.
const LEN: usize = 32;

pub(super) async fn parts_are_as_good_as_what_was_resolved_there(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, LEN * 8).await?;
    let (me, peer) = (fabric.rank(), neighbour(&fabric));
    let own = region.span::<u64>(&fabric, 0, LEN)?;
    let theirs = fabric.remote_span::<u64>(region.at(peer, 0), LEN)?;

    let elements = theirs.part(4..8)?;
    ensure_eq!(elements.addr(), region.at(peer, 32), "M10: where it is");
    ensure_eq!((elements.len(), elements.rank()), (4, peer), "M10: what it is");
    fabric.put_slice(&elements, &[1, 2, 3, 4]).await?;
    let word = theirs.word_at::<u64>(80)?;
    ensure_eq!(fabric.fetch_add(&word, 7).await?, 0, "M10: an atomic");
    let behind = theirs.part(16..32)?;
    let inner = behind.part(1..2)?;
    fabric.put(&inner, [u64::from(me.number()) + 100]).await?;
    fabric.flush(peer).await?;
    ensure_eq!(fabric.get(&elements, [0; 4]).await?, [1, 2, 3, 4], "M10: what was put");
    ensure_eq!(fabric.get_word(&word).await?, 7, "M10: what was added");

    // A wait, and own memory.
    let flag = own.word_at::<u64>(17 * 8)?;
    let seen = fabric.wait_until(&flag, Deps::One(peer), |value| value != 0).await?;
    ensure_eq!(seen, u64::from(peer.number()) + 100, "M10: a wait");
    fabric.store(&*own.word_at::<u64>(8)?, 5)?;
    ensure_eq!(fabric.load(&*own.word_at::<u64>(8)?)?, 5, "M10: own memory");

    let outside = Some(FabricError::out_of_bounds(region.at(peer, LEN as u64 * 8), 8, LEN as u64 * 8));
    ensure_eq!(theirs.word_at::<u64>(LEN * 8).err(), outside, "M10: after the end");
    let across = behind.part(15..17).err();
    ensure!(matches!(across, Some(FabricError::OutOfBounds(_))), "M10: beyond the whole: {across:?}");
    let crooked = Some(FabricError::misaligned(region.at(peer, 12), 8));
    ensure_eq!(theirs.word_at::<u64>(12).err(), crooked, "M10: eight bytes at 12");

    // A clone of a part is independent; all of them report that the region has been dropped.
    world.barrier().await?;
    drop(region);
    world.barrier().await?;
    let alone = Clone::clone(&*word);
    for gone in [fabric.get_word(&word).await.err(), fabric.get_word(&alone).await.err()] {
        ensure!(matches!(gone, Some(FabricError::StaleRegion { .. })), "M10: a dropped region: {gone:?}");
    }
    Ok(world.barrier().await?)
}
