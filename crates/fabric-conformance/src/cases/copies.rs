//! Copies between any two ranks' memory.

use super::{
    loss_point::{LossPoint, ended, lost, meet, notice_the_loss, others, victim},
    world_and_region,
};
use crate::{Loss, ensure, ensure_eq};
use rdma_fabric::{
    Deps, Existing, Fabric, FabricError, Group, ProgramResult, Rank, Refused, Region, RegionKey, Registered,
    RemoteAddr, RemoteSpan, Uses, op::Copy,
};

const LENGTHS: [usize; 10] = [0, 1, 7, 8, 61, 64, 65, 700, 4_097, 149_000];
/// Bytes of each rank's memory.
const ROOM: usize = 300_000;

/// Returns bytes that differ from place to place and from `salt` to `salt`.
fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(29) ^ salt.wrapping_mul(97) ^ (i >> 8)) as u8 | 1).collect()
}

/// Returns `bytes` after a copy of `len` of them from `from` to `to`.
fn moved(mut bytes: Vec<u8>, from: usize, to: usize, len: usize) -> Vec<u8> {
    bytes.copy_within(from..from + len, to);
    bytes
}

/// A copy into local memory has arrived when it completes; a copy into another rank's memory is
/// visible after a flush.
pub(super) async fn copies_are_gets_and_puts(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, ROOM).await?;
    let (me, ranks) = (fabric.rank(), fabric.ranks());
    let next = Rank::new(((me.index() + 1) % ranks) as u32);
    for (turn, len) in LENGTHS.into_iter().enumerate() {
        for at in [0, 3, 8] {
            // From here to the next rank and back, concurrently.
            let part = |rank, offset| fabric.remote_span::<u8>(region.at(rank, offset), len);
            let (here, there, back) = (part(me, at)?, part(next, 150_000)?, part(me, 150_000)?);
            let sent = pattern(len, turn + me.index());
            fabric.write(&region.span(&fabric, at as usize, len)?, &sent)?;
            fabric.copy(&there, &here).await?;
            fabric.flush(next).await?;
            ensure!(fabric.get(&there, vec![0; len]).await? == sent, "O16: {len} bytes do not arrive");
            fabric.write(&region.span(&fabric, at as usize, len)?, &vec![0u8; len])?;
            fabric.post(Copy { to: &here, from: &there }).await?.await?;
            let mut seen = vec![0; len];
            fabric.read(&region.span(&fabric, at as usize, len)?, &mut seen)?;
            ensure!(seen == sent, "O16: {len} bytes do not come back");
            world.barrier().await?;
            // Within own memory.
            fabric.copy(&back, &here).await?;
            fabric.read(&region.span(&fabric, 150_000, len)?, &mut seen)?;
            ensure!(seen == sent, "O16: {len} bytes do not get from here to here");
            world.barrier().await?;
        }
    }
    overlapping(&fabric, &region).await?;
    refused(&fabric, &mut world, &region).await?;
    Ok(world.barrier().await?)
}

/// The destination receives the previous bytes of the source.
async fn overlapping(fabric: &Fabric, region: &Region) -> ProgramResult<()> {
    for len in [5, 8, 9, 33, 64, 65, 700, 70_000, 150_000] {
        for (from, to) in [(100, 101), (101, 100), (100, 100), (64, 104), (4_200, 100), (100, 40_000)] {
            // Including some bytes after both.
            let all = from.max(to) + len + 100;
            let (whole, before, mut seen) = (region.span::<u8>(fabric, 0, all)?, pattern(all, len), vec![0; all]);
            fabric.write(&whole, &before)?;
            let part = |offset: usize| fabric.remote_span::<u8>(region.at(fabric.rank(), offset as u64), len);
            fabric.copy(&part(to)?, &part(from)?).await?;
            fabric.read(&whole, &mut seen)?;
            ensure!(seen == moved(before, from, to, len), "O16: {len} bytes from {from} to {to}");
        }
    }
    Ok(())
}

/// A refused copy transfers nothing, and its error names the rank or the cause.
async fn refused(fabric: &Fabric, world: &mut Group, region: &Region) -> ProgramResult<()> {
    let (me, peer) = (fabric.rank(), Rank::new(((fabric.rank().index() + 1) % fabric.ranks()) as u32));
    let gone = fabric.alloc_symmetric(256).await?;
    let span = |region: &Region, rank, len| fabric.remote_span::<u16>(region.at(rank, 0), len);
    let (here, there, short) = (span(region, me, 40)?, span(region, peer, 40)?, span(region, peer, 3)?);
    let (stale_here, stale_there) = (span(&gone, me, 40)?, span(&gone, peer, 40)?);
    fabric.write(&region.span::<u16>(fabric, 0, 40)?, &[7; 40])?;
    world.barrier().await?;
    let wrong = FabricError::length_mismatch(3, 40);
    ensure_eq!(fabric.copy(&here, &short).await, Err(wrong.clone()), "O10: a copy of too few");
    match fabric.try_post(Copy { to: &here, from: &short }) {
        Err(Refused::Failed(error, back)) => ensure!(error == wrong && back.from.len() == 3, "O10: {error}"),
        other => return Err(format!("O10: a copy of too few was posted: {:?}", other.map(drop)).into()),
    }
    let key = gone.key();
    drop(gone);
    world.barrier().await?;
    let stale = |rank| Err(FabricError::StaleRegion { rank, region: key });
    ensure_eq!(fabric.copy(&here, &stale_there).await, stale(peer), "O16: from a region that went");
    ensure_eq!(fabric.copy(&stale_there, &here).await, stale(peer), "O16: to a region that went");
    ensure_eq!(fabric.copy(&stale_here, &there).await, stale(me), "O16: to an own region that went");
    ensure_eq!(fabric.copy(&there, &stale_here).await, stale(me), "O16: from an own region that went");
    let mut seen = [0; 40];
    fabric.read(&region.span::<u16>(fabric, 0, 40)?, &mut seen)?;
    ensure_eq!(seen, [7; 40], "O10: nothing is transferred");
    Ok(world.barrier().await?)
}

/// Rank 0 copies from rank 1 to rank 2, and within each.
pub(super) async fn third_party_copies(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, ROOM).await?;
    let (me, from, to) = (fabric.rank().index(), Rank::new(1), Rank::new(2));
    let is_there = fabric.caps().third_party_copy;
    if !is_there && me == 0 {
        let part = |rank, at| fabric.remote_span::<u64>(region.at(rank, at), 4);
        for (to, from) in [(part(to, 0)?, part(from, 0)?), (part(to, 0)?, part(to, 64)?)] {
            let outcome = fabric.copy(&to, &from).await;
            ensure!(matches!(outcome, Err(FabricError::Unsupported { .. })), "O16: {outcome:?} though caps() deny it");
        }
    }
    if !is_there {
        return Ok(world.barrier().await?);
    }
    for (turn, len) in LENGTHS.into_iter().enumerate() {
        let sent = pattern(len, turn);
        if me == 1 {
            fabric.write(&region.span(&fabric, 5, len)?, &sent)?;
        }
        world.barrier().await?;
        if me == 0 {
            let part = |rank, offset| fabric.remote_span::<u8>(region.at(rank, offset), len);
            fabric.copy(&part(to, 64)?, &part(from, 5)?).await?;
            fabric.flush(to).await?;
            ensure!(fabric.get(&part(to, 64)?, vec![0; len]).await? == sent, "O16: {len} bytes of rank 1");
            fabric.copy(&part(to, 65)?, &part(to, 64)?).await?;
            fabric.flush_all().await?;
        }
        world.barrier().await?;
        if me == 2 {
            let mut seen = vec![0; len];
            fabric.read(&region.span(&fabric, 65, len)?, &mut seen)?;
            ensure!(seen == sent, "O16: {len} bytes within rank 2, one further");
        }
        world.barrier().await?;
    }
    wakes(&fabric, &region).await?;
    world.barrier().await?;
    let known = stale_ends(&fabric, &mut world, &region).await;
    world.barrier().await?;
    known?;
    existing(&fabric, &mut world, &region).await?;
    Ok(world.barrier().await?)
}

/// A copy wakes the owner of its destination.
async fn wakes(fabric: &Fabric, region: &Region) -> ProgramResult<()> {
    for len in [1, 100] {
        match fabric.rank().index() {
            0 => {
                let part = |rank, at| fabric.remote_span::<u64>(region.at(Rank::new(rank), at), len);
                fabric.copy(&part(2, 290_000)?, &part(1, 8)?).await?;
            }
            2 => {
                let word = region.word::<u64>(fabric, 290_000)?;
                fabric.wait_until(&word, Deps::One(Rank::new(0)), |value| value != 0).await?;
                fabric.store(&word, 0)?;
                fabric.put_word(&fabric.remote_word(region.at(Rank::new(0), 200_000))?, len as u64).await?;
            }
            _ => {}
        }
        if fabric.rank().index() == 0 {
            let word = region.word::<u64>(fabric, 200_000)?;
            fabric.wait_until(&word, Deps::One(Rank::new(2)), |value| value == len as u64).await?;
        }
    }
    Ok(())
}

/// A dropped region is named, on either side.
async fn stale_ends(fabric: &Fabric, world: &mut Group, region: &Region) -> ProgramResult<()> {
    let gone = fabric.alloc_symmetric(256).await?;
    let key = gone.key();
    let spans = |len| -> ProgramResult<[RemoteSpan<u8>; 4]> {
        let part = |region: &Region, rank| fabric.remote_span::<u8>(region.at(Rank::new(rank), 0), len);
        Ok([part(region, 2)?, part(&gone, 1)?, part(&gone, 2)?, part(region, 1)?])
    };
    let lengths = [spans(8)?, spans(200)?];
    world.barrier().await?;
    drop(gone);
    world.barrier().await?;
    if fabric.rank().index() == 0 {
        let stale = |rank| Err(FabricError::StaleRegion { rank: Rank::new(rank), region: key });
        for [to, stale_from, stale_to, from] in lengths {
            ensure_eq!(fabric.copy(&to, &stale_from).await, stale(1), "O16: from a region that went");
            ensure_eq!(fabric.copy(&stale_to, &from).await, stale(2), "O16: to a region that went");
            let wrong = FabricError::length_mismatch(from.len(), 3);
            ensure_eq!(fabric.copy(&to.slice(0..3)?, &from).await, Err(wrong), "O10: a copy of too many");
        }
        ensure_eq!(fabric.flush_all().await, Ok(()), "O13: what was refused is not told again");
    }
    Ok(())
}

/// From, to and between memory that existed before it was registered.
async fn existing(fabric: &Fabric, world: &mut Group, region: &Region) -> ProgramResult<()> {
    const LEN: usize = 130_001;
    if fabric.caps().register_existing == Existing::None {
        return Ok(());
    }
    let me = fabric.rank().index();
    for staged in [false, true] {
        let memory = pattern(LEN, me);
        let mine = if staged { Registered::new(fabric, memory, Uses::Atomics)? } else { fabric.register(memory)? };
        let keys: Vec<RegionKey> = world.allgather(mine.key()).await?;
        let part = |rank: u32, region, offset| {
            fabric.remote_span::<u8>(RemoteAddr { rank: Rank::new(rank), region, offset }, LEN)
        };
        if me == 0 {
            let (source, middle, sink) = (part(1, keys[1], 0)?, part(2, region.key(), 9)?, part(2, keys[2], 0)?);
            fabric.copy(&middle, &source).await?;
            fabric.flush_all().await?;
            ensure!(fabric.get(&middle, vec![0; LEN]).await? == pattern(LEN, 1), "O16: from memory that exists");
            fabric.copy(&sink, &source).await?;
            fabric.flush_all().await?;
            let within = |range| sink.slice(range);
            fabric.copy(&within(10..90_000)?, &within(0..89_990)?).await?;
            fabric.flush_all().await?;
        }
        world.barrier().await?;
        let back = mine.take().await?;
        let want = if me == 2 { moved(pattern(LEN, 1), 0, 10, 89_990) } else { pattern(LEN, me) };
        ensure!(back == want, "O16: to memory that exists, staged: {staged}");
        world.barrier().await?;
    }
    Ok(())
}

/// A lost rank is named, on either side.
pub(super) async fn copies_fail(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let (mut world, region) = world_and_region(&fabric, 512).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    let other = Rank::new((me.number() + 1) % last.number());
    let mut copies = Vec::new();
    for len in [4, 50] {
        let part = |rank| fabric.remote_span::<u64>(region.at(rank, 8), len);
        copies.extend([(part(me)?, part(last)?), (part(last)?, part(me)?)]);
        if fabric.caps().third_party_copy {
            copies.extend([(part(other)?, part(last)?), (part(last)?, part(other)?), (part(last)?, part(last)?)]);
        }
    }
    point.reached(loss).await?;
    notice_the_loss(&fabric).await?;
    for (to, from) in &copies {
        let end = ended(&fabric, "E2: a copy", fabric.copy(to, from)).await?;
        ensure_eq!(end, lost(last), "E2: a copy to {to:?} from {from:?}");
    }
    meet(others).await
}
