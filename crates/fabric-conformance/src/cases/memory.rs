//! Identity and registered memory.

use super::{neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, LocalWord, Node, Pod, ProgramResult, Rank, RegionKey, RemoteAddr, Zeroable,
};
use std::time::Duration;

/// A type with the largest alignment that a region's start guarantees.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

pub(super) async fn identity(fabric: Fabric) -> ProgramResult<()> {
    let (me, ranks) = (fabric.rank(), fabric.ranks());
    ensure!(me.index() < ranks, "I1: {me} of {ranks}");
    let mut world = Group::world(&fabric).await?;
    let all = world.allgather([me.number(), ranks as u32]).await?;
    for (i, card) in all.iter().enumerate() {
        ensure_eq!(*card, [i as u32, ranks as u32], "I1: the card of member {i}");
    }
    let nodes = (0..ranks as u32).map(|rank| fabric.node(Rank::new(rank))).collect::<Result<Vec<_>, _>>()?;
    let mine = nodes.iter().fold(0u64, |hash, node| hash.wrapping_mul(31).wrapping_add(node.index() as u64));
    let all = world.allgather(mine).await?;
    ensure!(all.iter().all(|theirs| *theirs == mine), "I2: ranks do not agree who runs where");
    let rank = Rank::new(ranks as u32);
    ensure_eq!(fabric.node(rank), Err(FabricError::NoSuchRank { rank, ranks }), "I2");
    ensure_eq!(fabric.facts().node_count(), nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0), "I2: nodes");
    for number in 0..=fabric.facts().node_count() as u32 {
        let node = Node::new(number);
        let on_it = (0..ranks as u32).filter(|rank| nodes[*rank as usize] == node).map(Rank::new);
        let told: Vec<_> = (0..=ranks).map_while(|i| fabric.facts().rank_on(node, i)).collect();
        ensure_eq!(told, on_it.collect::<Vec<_>>(), "I2: ranks of {node:?}");
    }
    let caps = fabric.caps();
    ensure!((8..=64).contains(&caps.notice_bits) && caps.max_transfer > 0, "I3: {caps:?}");
    let in_order = u64::from(caps.oversubscribed) << 3
        | u64::from(caps.immediate) << 2
        | u64::from(caps.puts_in_order) << 1
        | u64::from(caps.third_party_copy);
    let numbers =
        [in_order, caps.put_order as u64, caps.notice_bits.into(), caps.max_transfer, caps.blocking_wait.into()];
    let all = world.allgather(numbers).await?;
    ensure!(all.iter().all(|theirs| *theirs == numbers), "I3: ranks have other capabilities: {all:?}");
    ensure_eq!(fabric.caps(), caps, "I3: asked again");
    ensure_eq!((fabric.rank(), fabric.ranks()), (me, ranks), "I1: asked again");
    Ok(world.barrier().await?)
}

pub(super) async fn regions_are_zeroed_and_whole(fabric: Fabric) -> ProgramResult<()> {
    for bytes in [0usize, 1, 7, 8, 64, 65, 4096, 100_003] {
        // Twice, because memory that is reused must be zeroed again.
        for _ in 0..2 {
            let region = fabric.alloc(bytes)?;
            ensure_eq!(region.len(), bytes, "M1: length");
            let span = region.span::<u8>(&fabric, 0, bytes)?;
            let mut seen = vec![1u8; bytes];
            fabric.read(&span, &mut seen)?;
            ensure!(seen.iter().all(|byte| *byte == 0), "M1: {bytes} bytes are not all zero");
            let pattern: Vec<u8> = (0..bytes).map(|i| (i * 7 + 1) as u8).collect();
            fabric.write(&span, &pattern)?;
            fabric.read(&span, &mut seen)?;
            ensure!(seen == pattern, "M5: {bytes} bytes do not come back");
        }
    }
    let region = fabric.alloc(64)?;
    region.span::<Line>(&fabric, 0, 1)?;
    let narrow = region.word::<u32>(&fabric, 4)?;
    fabric.store(&narrow, u32::MAX - 1)?;
    ensure_eq!(fabric.load(&narrow)?, u32::MAX - 1, "M6: a stored word");
    let wide: LocalWord<u64> = region.word(&fabric, 8)?;
    fabric.store(&wide, u64::MAX - 1)?;
    ensure_eq!(fabric.load(&wide)?, u64::MAX - 1, "M6: a stored word");
    ensure_eq!(fabric.load(&region.word::<u32>(&fabric, 0)?)?, 0, "M6: the word before");
    let part = region.span::<u64>(&fabric, 0, 8)?.slice(1..2)?;
    let mut one = [0];
    fabric.read(&part, &mut one)?;
    ensure_eq!(one, [u64::MAX - 1], "a slice of a span");
    let long = fabric.read(&part, &mut [0, 0]);
    ensure_eq!(long, Err(FabricError::length_mismatch(2, 1)), "a buffer too long to read into");
    let short = fabric.write(&part, &[]);
    ensure_eq!(short, Err(FabricError::length_mismatch(0, 1)), "a buffer too short to write from");
    Ok(())
}

pub(super) async fn symmetric_regions_have_one_key(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let mut kept = Vec::new();
    for bytes in [8, 200, 8] {
        // Local allocations in between, of a different size on each rank, must not matter.
        kept.push(fabric.alloc(24 * (1 + fabric.rank().index()))?);
        let region = fabric.alloc_symmetric(bytes).await?;
        let keys = world.allgather(region.key()).await?;
        ensure!(keys.iter().all(|key| *key == region.key()), "M2: the keys are {keys:?}");
        // Immediately reachable, on every rank.
        for rank in 0..fabric.ranks() as u32 {
            let word = fabric.remote_word::<u64>(region.at(Rank::new(rank), 0))?;
            fabric.fetch_add(&word, 1).await?;
        }
        world.barrier().await?;
        let word = region.word::<u64>(&fabric, 0)?;
        ensure_eq!(fabric.load(&word)?, fabric.ranks() as u64, "M2: additions that arrived");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn symmetric_sizes_must_agree(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let bytes = if fabric.rank().index() == 1 { 128 } else { 64 };
    let told = match fabric.alloc_symmetric(bytes).await {
        Ok(_) => 0u64,
        Err(FabricError::Mismatch(_)) => 1,
        Err(other) => return Err(format!("M7: {bytes} bytes on {}: {other}", fabric.rank()).into()),
    };
    // The first rank to arrive may miss it; at least one rank must notice.
    let told = world.allgather(told).await?;
    ensure!(told.contains(&1), "M7: nobody was told that sizes differ");
    Ok(world.barrier().await?)
}

pub(super) async fn resolving_names_the_numbers(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(40).await?;
    let (key, peer) = (region.key(), neighbour(&fabric));
    for rank in [fabric.rank(), peer] {
        let at = |offset| RemoteAddr { rank, region: key, offset };
        let outside = |offset, len| Some(FabricError::out_of_bounds(at(offset), len, 40));
        fabric.remote_word::<u64>(at(32))?;
        fabric.remote_span::<u8>(at(40), 0)?;
        ensure_eq!(fabric.remote_word::<u64>(at(40)).err(), outside(40, 8), "M4: after the end");
        ensure_eq!(fabric.remote_span::<u8>(at(1), 40).err(), outside(1, 40), "M4: across the end");
        ensure_eq!(fabric.remote_span::<u8>(at(u64::MAX), 2).err(), outside(u64::MAX, 2), "M4: offsets that wrap");
        let huge = fabric.remote_span::<u64>(at(0), usize::MAX).err();
        ensure!(matches!(huge, Some(FabricError::OutOfBounds(_))), "M4: lengths that wrap: {huge:?}");
        let crooked = |offset, align| Some(FabricError::misaligned(at(offset), align));
        ensure_eq!(fabric.remote_word::<u64>(at(12)).err(), crooked(12, 8), "M4: eight bytes at 12");
        ensure_eq!(fabric.remote_word::<u32>(at(6)).err(), crooked(6, 4), "M4: four bytes at 6");
        ensure_eq!(fabric.remote_span::<u16>(at(3), 2).err(), crooked(3, 2), "M4: two bytes at 3");
        for wrong in [
            RegionKey { index: u32::MAX, ..key },
            RegionKey { index: key.index ^ 0x5555, ..key },
            RegionKey { generation: key.generation + 2, ..key },
        ] {
            let nowhere = fabric.remote_word::<u64>(RemoteAddr { rank, region: wrong, offset: 0 }).err();
            ensure_eq!(nowhere, Some(FabricError::NoSuchRegion { rank, region: wrong }), "M4: a key from nowhere");
        }
    }
    let (rank, ranks) = (Rank::new(fabric.ranks() as u32), fabric.ranks());
    let nobody = fabric.remote_word::<u64>(RemoteAddr { rank, region: key, offset: 0 }).err();
    ensure_eq!(nobody, Some(FabricError::NoSuchRank { rank, ranks }), "M4: a rank too high");
    // Some providers have cells of one width only; on the others any width works.
    for wide in
        [fabric.remote_span::<u16>(region.at(peer, 2), 3).err(), fabric.remote_word::<u32>(region.at(peer, 4)).err()]
    {
        ensure!(matches!(wide, None | Some(FabricError::CellWidth(_))), "M4: another width: {wide:?}");
    }
    let theirs = fabric.local_word::<u64>(region.at(peer, 0)).err();
    ensure!(
        matches!(theirs, Some(FabricError::Unsupported { .. })),
        "M4, W1: another rank's memory as own: {theirs:?}"
    );
    let span = fabric.remote_span::<u64>(region.at(peer, 0), 4)?;
    ensure!(matches!(span.slice(3..5), Err(FabricError::OutOfBounds(_))), "M4: a slice across the end");
    // Peers may still be resolving.
    Group::world(&fabric).await?.barrier().await?;
    Ok(())
}

pub(super) async fn written_meanwhile(fabric: Fabric) -> ProgramResult<()> {
    const LEN: usize = 1000;
    let (mut world, region) = world_and_region(&fabric, LEN + 24).await?;
    let peer = neighbour(&fabric);
    let done = region.word::<u64>(&fabric, LEN.next_multiple_of(8))?;
    let (own, far) = (region.span::<u8>(&fabric, 1, LEN - 1)?, fabric.remote_span::<u8>(region.at(peer, 1), LEN - 1)?);
    if fabric.rank().index().is_multiple_of(2) {
        for round in 0..40u8 {
            fabric.put(&far, vec![if round % 2 == 0 { 0x55 } else { 0xaa }; LEN - 1]).await?;
        }
        fabric.flush(peer).await?;
        fabric.put_word(&fabric.remote_word::<u64>(region.at(peer, LEN.next_multiple_of(8) as u64))?, 1).await?;
    } else {
        let mut seen = vec![0u8; LEN - 1];
        loop {
            let last = fabric.load(&done)? == 1;
            fabric.read(&own, &mut seen)?;
            let strange = seen.iter().find(|byte| ![0, 0x55, 0xaa].contains(*byte));
            ensure!(strange.is_none(), "M5: a byte that nobody wrote: {strange:?}");
            if last {
                // Which put came last is unspecified, but every byte was written by one of them.
                ensure!(!seen.contains(&0), "O5: a byte of no put");
                break;
            }
            // This does not order anything, but reports a loss.
            fabric.room(Some(peer)).await?;
            fabric.sleep(Duration::from_micros(3)).await;
        }
    }
    Ok(world.barrier().await?)
}

pub(super) async fn loads_acquire_what_stores_release(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 24).await?;
    let peer = neighbour(&fabric);
    let (data, flag) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 8)?);
    let (far, told) = (region.at(peer, 0), region.at(peer, 8));
    let (far, told) = (fabric.remote_word::<u64>(far)?, fabric.remote_word::<u64>(told)?);
    let go_on = fabric.remote_word::<u64>(region.at(peer, 16))?;
    for round in 1..=50u64 {
        if fabric.rank().index().is_multiple_of(2) {
            // The owner stores and the peer gets, in turns, so that nothing is overwritten too
            // early.
            fabric.store(&data, round)?;
            fabric.store(&flag, round)?;
            fabric.wait_until(&region.word::<u64>(&fabric, 16)?, Deps::One(peer), |v| v == round).await?;
            fabric.put_word(&far, round).await?;
            fabric.flush(peer).await?;
            fabric.put_word(&told, round).await?;
            fabric.wait_until(&region.word::<u64>(&fabric, 16)?, Deps::One(peer), |v| v == 100 + round).await?;
        } else {
            while fabric.get_word(&told).await? != round {
                fabric.sleep(Duration::from_micros(1)).await;
            }
            ensure_eq!(fabric.get_word(&far).await?, round, "M6: stored before the flag");
            fabric.put_word(&go_on, round).await?;
            while fabric.load(&flag)? != round {
                // This does not order anything, but reports a loss.
                fabric.room(Some(peer)).await?;
                fabric.sleep(Duration::from_micros(1)).await;
            }
            ensure_eq!(fabric.load(&data)?, round, "M6: visible before the flag");
            fabric.put_word(&go_on, 100 + round).await?;
        }
    }
    Ok(world.barrier().await?)
}
