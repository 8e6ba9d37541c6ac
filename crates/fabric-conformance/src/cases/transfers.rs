//! Puts and gets.

use super::{neighbour, triggered::polled, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Refused, RemoteAddr};
use std::time::Duration;

/// Returns bytes that vary with their position and with `salt`.
fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ salt.wrapping_mul(101) ^ (i >> 8)) as u8 | 1).collect()
}

pub(super) async fn every_length_comes_round(fabric: Fabric) -> ProgramResult<()> {
    const ROOM: usize = 70_000;
    let (mut world, region) = world_and_region(&fabric, ROOM).await?;
    let me = fabric.rank().index();
    // The next rank's memory; with a single rank, its own (O11).
    let target = Rank::new(((me + 1) % fabric.ranks()) as u32);
    for len in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 4_095, 65_536] {
        for offset in [0, 1, 3, 8, 13] {
            let sent = pattern(len, offset + me);
            let span = fabric.remote_span::<u8>(region.at(target, offset as u64), len)?;
            let sent = fabric.put(&span, sent).await?;
            fabric.flush(target).await?;
            let got = fabric.get(&span, vec![0u8; len]).await?;
            ensure!(got == sent, "O8: {len} bytes at {offset} do not come back");
            // One byte more: nothing was written beyond the span.
            let around = fabric.remote_span::<u8>(region.at(target, offset as u64), len + 1)?;
            let after = fabric.get(&around, vec![0u8; len + 1]).await?[len];
            ensure_eq!(after, 0, "the byte after {len} at {offset}");
            fabric.put(&span, vec![0u8; len].into_boxed_slice()).await?;
            fabric.flush_all().await?;
        }
    }
    world.barrier().await?;
    let mut own = vec![1u8; ROOM];
    fabric.read(&region.span(&fabric, 0, ROOM)?, &mut own)?;
    ensure!(own.iter().all(|byte| *byte == 0), "O5: flushed puts are visible to the target's CPU");
    Ok(world.barrier().await?)
}

pub(super) async fn every_source_and_sink(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 256).await?;
    let peer = neighbour(&fabric);
    let far = fabric.remote_span::<u32>(region.at(peer, 128), 8)?;
    let want: [u32; 8] = core::array::from_fn(|i| 1000 * (fabric.rank().number() + 1) + i as u32);

    let array = fabric.put(&far, want).await?;
    ensure_eq!(array, want, "O3: an array comes back");
    fabric.flush(peer).await?;
    ensure_eq!(fabric.get(&far, [0u32; 8]).await?, want, "a get into an array");

    let boxed = fabric.put(&far, vec![7u32; 8].into_boxed_slice()).await?;
    ensure_eq!(&boxed[..], &[7; 8], "O3: a box comes back");
    fabric.flush(peer).await?;
    ensure_eq!(fabric.get(&far, vec![0u32; 8]).await?, vec![7; 8], "a get into a vector");

    // From and to registered memory.
    let own = region.span::<u32>(&fabric, 0, 8)?;
    fabric.write(&own, &want)?;
    fabric.put(&far, own.clone()).await?;
    fabric.flush(peer).await?;
    let other = region.span::<u32>(&fabric, 64, 8)?;
    fabric.get(&far, other.clone()).await?;
    let mut seen = [0; 8];
    fabric.read(&other, &mut seen)?;
    ensure_eq!(seen, want, "by way of registered memory");
    // A part of a span.
    fabric.put(&far.slice(2..4)?, [1u32, 2]).await?;
    fabric.flush(peer).await?;
    let part = fabric.get(&far, [0u32; 8]).await?;
    ensure_eq!(part[1..5], [want[1], 1, 2, want[4]], "a slice");
    // One word and a span see the same memory.
    let word = fabric.remote_word::<u32>(region.at(peer, 128 + 8))?;
    ensure_eq!(fabric.get_word(&word).await?, 1, "a word of a span");
    Ok(world.barrier().await?)
}

pub(super) async fn slices_are_lent(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 70_000).await?;
    let peer = neighbour(&fabric);
    for len in [0, 1, 8, 61, 65, 5_000, 65_536] {
        let far = fabric.remote_span::<u8>(region.at(peer, 3), len)?;
        let sent = pattern(len, 7);
        let (mut lent, mut got) = (sent.clone(), vec![0; len]);
        fabric.put_slice(&far, &lent).await?;
        lent.fill(0);
        fabric.flush(peer).await?;
        fabric.get_slice(&far, &mut got).await?;
        ensure!(got == sent, "O3: {len} bytes of a slice do not come back");
        // A transfer whose future is dropped after posting continues, and the caller can use its
        // slice again.
        lent.copy_from_slice(&pattern(len, 8));
        let _posted = polled(fabric.put_slice(&far, &lent));
        lent.fill(0);
        fabric.flush(peer).await?;
        let _posted = polled(fabric.get_slice(&far, &mut lent));
        fabric.get_slice(&far, &mut got).await?;
        ensure!(got == pattern(len, 8), "O4: {len} bytes of a slice that was given back are lost");
    }
    let far = fabric.remote_span::<u16>(region.at(peer, 64), 4)?;
    let mut got = [5; 3];
    let wrong = FabricError::length_mismatch(3, 4);
    ensure_eq!(fabric.put_slice(&far, &[1; 3]).await, Err(wrong.clone()), "O10: a slice too short to put");
    ensure_eq!(fabric.get_slice(&far, &mut got).await, Err(wrong), "O10: a slice too short to get");
    ensure_eq!(got, [5; 3], "O10: nothing is transferred");
    Ok(world.barrier().await?)
}

/// The source of each put is overwritten as soon as it is posted.
pub(super) async fn lent_bytes_are_taken_when_posted(fabric: Fabric) -> ProgramResult<()> {
    // More than some queues hold.
    const WORDS: usize = 10_000;
    let (mut world, region) = world_and_region(&fabric, 8 * WORDS).await?;
    let peer = neighbour(&fabric);
    for len in [0, 1, 8, 61, 65, 5_000, 65_536] {
        let far = fabric.remote_span::<u8>(region.at(peer, 3), len)?;
        let mut lent = pattern(len, 9);
        let put = fabric.try_put_slice(&far, &lent, None);
        lent.fill(0);
        put.map_err(|refused| format!("O20: {len} bytes: {refused:?}"))?.await?;
        fabric.flush(peer).await?;
        ensure!(fabric.get(&far, vec![0; len]).await? == pattern(len, 9), "O20: {len} bytes changed after posting");
    }
    let all = fabric.remote_span::<u64>(region.at(peer, 0), WORDS)?;
    match fabric.try_put_slice(&all, &[1; 3], None) {
        Err(Refused::Failed(error, ())) => ensure_eq!(error, FabricError::length_mismatch(3, WORDS), "O10: a slice"),
        other => return Err(format!("O10: a slice of the wrong length: {other:?}").into()),
    }
    fabric.put(&all, vec![0; WORDS]).await?;
    fabric.flush(peer).await?;
    world.barrier().await?;
    // One buffer for as many puts as there is room for.
    let (mut buffer, mut under_way) = ([0u64], Vec::new());
    while under_way.len() < WORDS {
        let next = under_way.len();
        buffer[0] = next as u64 + 1;
        match fabric.try_put_slice(&all.slice(next..next + 1)?, &buffer, None) {
            Ok(put) => under_way.push(put),
            Err(Refused::Full(())) => break,
            Err(Refused::Failed(error, ())) => return Err(error.into()),
        }
    }
    let posted = under_way.len();
    for put in under_way {
        put.await?;
    }
    fabric.flush(peer).await?;
    let mut want: Vec<u64> = (1..=WORDS as u64).collect();
    want[posted..].fill(0);
    ensure!(fabric.get(&all, vec![0; WORDS]).await? == want, "O20, O1: {posted} words from one buffer");
    world.barrier().await?;
    // With a notice, posted immediately or when there is room.
    for (data, wait) in [(1, false), (2, true)] {
        let mut lent = [u64::from(fabric.rank().number()), data];
        if wait {
            fabric.put_slice_notify(&all.slice(0..2)?, &lent, data).await?;
        } else {
            let put = fabric.try_put_slice(&all.slice(0..2)?, &lent, Some(data));
            lent.fill(0);
            put.map_err(|refused| format!("O20: with a notice: {refused:?}"))?.await?;
        }
        let notice = fabric.next_notice(Deps::One(peer)).await?;
        let mut seen = [0u64; 2];
        fabric.read(&region.span(&fabric, 0, 2)?, &mut seen)?;
        ensure_eq!((notice.data, notice.end, seen), (data, 16, [u64::from(peer.number()), data]), "O20, N2");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn long_transfers_are_split(fabric: Fabric) -> ProgramResult<()> {
    let limit = fabric.caps().max_transfer;
    // A provider with such a high limit never splits transfers.
    let len = if limit < 1 << 25 { limit as usize + 4_099 } else { 1 << 20 };
    let (mut world, region) = world_and_region(&fabric, len).await?;
    if fabric.rank() == Rank::new(0) {
        let to = fabric.remote_span::<u8>(region.at(Rank::new(1), 0), len)?;
        let sent = fabric.put(&to, pattern(len, 5)).await?;
        fabric.flush_all().await?;
        let got = fabric.get(&to, vec![0; len]).await?;
        ensure!(got == sent, "O14: {len} bytes do not come back");
    }
    world.barrier().await?;
    if fabric.rank() == Rank::new(1) {
        let mut seen = vec![0; len];
        fabric.read(&region.span(&fabric, 0, len)?, &mut seen)?;
        ensure!(seen == pattern(len, 5), "O14: {len} bytes do not arrive");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn errors_come_with_the_next_flush(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (me, owner) = (fabric.rank(), Rank::new(1));
    for pause in [0, 1, 2, 5, 20] {
        let region = fabric.alloc(64)?;
        let key = world.broadcast(owner.index(), region.key()).await?;
        let span = fabric.remote_span::<u64>(RemoteAddr { rank: owner, region: key, offset: 0 }, 8)?;
        let stale = FabricError::StaleRegion { rank: owner, region: key };
        world.barrier().await?;
        if me == owner {
            fabric.sleep(Duration::from_micros(pause)).await;
            drop(region);
            world.barrier().await?;
            continue;
        }
        // Puts while the region is dropped are posted without effect, or refused; after a refusal
        // no more are posted.
        let mut refused = None;
        for _ in 0..10_000 {
            match fabric.put(&span, [1u64; 8]).await {
                Ok(_) => fabric.sleep(Duration::from_micros(1)).await,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        ensure_eq!(refused, Some(stale.clone()), "M3: puts to a region that went");
        let told = fabric.flush(owner).await;
        ensure!(told == Ok(()) || told == Err(stale), "O13: a flush after the region went: {told:?}");
        ensure_eq!(fabric.flush(owner).await, Ok(()), "O13: an error is told once");
        ensure_eq!(fabric.flush_all().await, Ok(()), "O13: an error is told once");
        world.barrier().await?;
    }
    Ok(())
}
