//! Multicasts.

use super::{
    loss_point::{LossPoint, ended, is_gone, meet, notice_the_loss, only_the_loss, others, victim},
    world_and_region,
};
use crate::{Loss, ensure, ensure_eq};
use rdma_fabric::{
    Deps, Fabric, FabricError, MulticastSpan, Multicasts, Pod, ProgramResult, Rank, Refused, Region, RemoteAddr,
    Result, error::MulticastError,
};

const LENGTHS: [usize; 8] = [0, 1, 7, 8, 61, 65, 5_000, 65_536];

/// Returns bytes that vary with their position and with `salt`, none of them 0.
fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(37) ^ salt.wrapping_mul(89) ^ (i >> 8)) as u8 | 1).collect()
}

/// Returns whether the provider lacks multicasts; checks that it then refuses them.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if fabric.caps().multicasts != Multicasts::None {
        return Ok(false);
    }
    let missing = Err(FabricError::Unsupported { feature: &"multicast" });
    ensure_eq!(Multicasts::reach(fabric, &[fabric.rank()]), missing.clone(), "U1: a question");
    let region = fabric.alloc(8)?;
    let span = MulticastSpan::<u64>::new(fabric, &[region.at(fabric.rank(), 0)], 1);
    ensure_eq!(span.map(drop), missing.map(drop), "U1: a destination though caps() deny multicasts");
    Ok(true)
}

/// Returns the ranks that a multicast reaches: all of them, or one per node.
fn reachable(fabric: &Fabric) -> ProgramResult<Vec<Rank>> {
    let all: Vec<_> = (0..fabric.ranks() as u32).map(Rank::new).collect();
    let one_each = (0..fabric.facts().node_count() as u32)
        .filter_map(|node| fabric.facts().rank_on(rdma_fabric::Node::new(node), 0));
    match Multicasts::reach(fabric, &all) {
        Ok(()) => Ok(all),
        Err(FabricError::Multicast(_)) => Ok(one_each.collect()),
        Err(error) => Err(error.into()),
    }
}

fn everywhere<T: Pod>(
    fabric: &Fabric,
    (region, offset): (&Region, u64),
    members: &[Rank],
    len: usize,
) -> Result<MulticastSpan<T>> {
    let at: Vec<_> = members.iter().map(|rank| region.at(*rank, offset)).collect();
    MulticastSpan::new(fabric, &at, len)
}

pub(super) async fn multicasts_reach_every_member(fabric: Fabric) -> ProgramResult<()> {
    const ROOM: usize = 140_000;
    const SOURCE: usize = 70_000;
    let (mut world, region) = world_and_region(&fabric, ROOM).await?;
    let me = fabric.rank();
    let most = reachable(&fabric)?;
    for root in (0..fabric.ranks() as u32).map(Rank::new) {
        for members in [&most[..], &most[..1], &most[..most.len().min(2)]] {
            for (turn, len) in LENGTHS.into_iter().enumerate() {
                let sent = pattern(len, turn + root.index());
                if me == root {
                    let to = everywhere::<u8>(&fabric, (&region, 3), members, len)?;
                    ensure!(to.members().eq(members.iter().copied()) && to.len() == len, "U2: {to:?}");
                    if turn % 2 == 0 {
                        ensure!(to.put(&fabric, sent.clone()).await? == sent, "U3: a source comes back");
                    } else {
                        // The multicast is complete, so the source can be overwritten.
                        let own = region.span(&fabric, SOURCE, len)?;
                        fabric.write(&own, &sent)?;
                        to.put(&fabric, own.clone()).await?;
                        fabric.write(&own, &vec![0; len])?;
                    }
                    for member in members {
                        fabric.flush(*member).await?;
                        let there = fabric.remote_span::<u8>(region.at(*member, 3), len)?;
                        ensure!(fabric.get(&there, vec![0; len]).await? == sent, "U4: {len} bytes at {member}");
                    }
                }
                world.barrier().await?;
                let mut seen = vec![1; ROOM];
                let whole = region.span(&fabric, 0, ROOM)?;
                fabric.read(&whole, &mut seen)?;
                let mut want = vec![0; ROOM];
                if members.contains(&me) {
                    want[3..3 + len].copy_from_slice(&sent);
                }
                ensure!(seen == want, "U3: {len} bytes of {root} to {members:?}, at {me}");
                fabric.write(&whole, &vec![0; ROOM])?;
                world.barrier().await?;
            }
        }
    }
    // From the poster's own part of the destination, and a part of a destination.
    let (root, to) = (most[0], everywhere::<u16>(&fabric, (&region, 8), &most, 12)?);
    if me == root {
        let own = region.span::<u16>(&fabric, 8, 12)?;
        fabric.write(&own, &[7; 12])?;
        to.put(&fabric, own).await?;
        fabric.flush_all().await?;
        to.slice(2..4)?.put(&fabric, [1, 2]).await?;
        fabric.flush_all().await?;
    }
    world.barrier().await?;
    if most.contains(&me) {
        let mut seen = [0u16; 6];
        fabric.read(&region.span(&fabric, 8, 6)?, &mut seen)?;
        ensure_eq!(seen, [7, 7, 1, 2, 7, 7], "U2, U3: a part of a destination");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn multicasts_are_posted_like_puts(fabric: Fabric) -> ProgramResult<()> {
    // More than some queues hold.
    const WORDS: usize = 4_000;
    let (mut world, region) = world_and_region(&fabric, 8 * WORDS).await?;
    let members = reachable(&fabric)?;
    let all = everywhere::<u64>(&fabric, (&region, 0), &members, WORDS)?;
    let mut posted = 0;
    if fabric.rank() == Rank::new(0) {
        match all.try_put(&fabric, vec![5; 3]) {
            Err(Refused::Failed(error, back)) => {
                ensure_eq!((error, back), (FabricError::length_mismatch(3, WORDS), vec![5; 3]), "O10, O1");
            }
            other => return Err(format!("O10: a source of the wrong length: {:?}", other.map(drop)).into()),
        }
        while posted < WORDS {
            match all.slice(posted..posted + 1)?.try_put(&fabric, [posted as u64 + 1]) {
                // Dropping the handle does not cancel the multicast.
                Ok(handle) => drop(handle),
                Err(Refused::Full(back)) => {
                    ensure_eq!(back, [posted as u64 + 1], "O1: what there was no room for");
                    break;
                }
                Err(Refused::Failed(error, _)) => return Err(error.into()),
            }
            posted += 1;
        }
        // One that waits for room. Sending to no member and sending no bytes are both legal.
        all.slice(WORDS - 1..WORDS)?.put(&fabric, [u64::MAX]).await?;
        MulticastSpan::<u64>::new(&fabric, &[], 2)?.put(&fabric, [1, 2]).await?;
        all.slice(1..1)?.put(&fabric, [0u64; 0]).await?;
        fabric.flush_all().await?;
    }
    let posted = world.broadcast(0, posted as u64).await? as usize;
    if members.contains(&fabric.rank()) {
        let mut want: Vec<u64> = (1..=WORDS as u64).collect();
        want[posted..].fill(0);
        want[WORDS - 1] = u64::MAX;
        let mut seen = vec![0; WORDS];
        fabric.read(&region.span(&fabric, 0, WORDS)?, &mut seen)?;
        ensure!(posted == WORDS || seen == want, "U3, O1: {posted} words posted until there was no room");
        ensure!(seen[..posted.min(WORDS - 1)] == want[..posted.min(WORDS - 1)], "U3, O4: of {posted} words");
    }
    Ok(world.barrier().await?)
}

/// A put after a multicast, and a multicast after a put: a rank that sees the later one sees the
/// earlier one, where puts to one target keep their order or a flush is between the two.
pub(super) async fn multicasts_keep_the_order_of_puts(fabric: Fabric) -> ProgramResult<()> {
    const WORDS: usize = 500;
    let (mut world, region) = world_and_region(&fabric, 8 * WORDS).await?;
    let (me, members) = (fabric.rank(), reachable(&fabric)?);
    let [front, back] = [(0, 1), (1, WORDS)].map(|(start, end)| (8 * start, end - start));
    for round in 1..=20u64 {
        // The flag, which is put later, is located before the data or after it.
        let (data, flag) = if round % 2 == 0 { (back, front) } else { ((0, WORDS - 1), (8 * (WORDS - 1), 1)) };
        if me == Rank::new(0) {
            let one_by_one = async |(start, len): (usize, usize)| -> Result<()> {
                for member in &members {
                    let to = fabric.remote_span::<u64>(region.at(*member, start as u64), len)?;
                    fabric.put(&to, vec![round; len]).await?;
                }
                Ok(())
            };
            let at_once = async |(start, len): (usize, usize)| -> Result<()> {
                let to = everywhere::<u64>(&fabric, (&region, start as u64), &members, len)?;
                to.put(&fabric, vec![round; len]).await.map(drop)
            };
            let multicast_first = round % 4 < 2;
            if multicast_first {
                at_once(data).await?
            } else {
                one_by_one(data).await?
            }
            if !fabric.caps().puts_in_order {
                fabric.flush_all().await?;
            }
            if multicast_first { one_by_one(flag).await? } else { at_once(flag).await? }
        }
        if members.contains(&me) {
            let word = region.word::<u64>(&fabric, flag.0)?;
            fabric.wait_until(&word, Deps::One(Rank::new(0)), |value| value == round).await?;
            let mut seen = vec![0u64; data.1];
            fabric.read(&region.span(&fabric, data.0, data.1)?, &mut seen)?;
            ensure!(seen.iter().all(|word| *word == round), "U4, O17: round {round} at {me}: {seen:?}");
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn multicasts_say_what_they_cannot_reach(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let gone = fabric.alloc_symmetric(64).await?;
    let members = reachable(&fabric)?;
    let [first, last] = [members[0], members[members.len() - 1]];
    let hardware = fabric.caps().multicasts == Multicasts::Hardware;
    let twice = Multicasts::reach(&fabric, &[first, last, first]);
    match twice {
        Err(FabricError::Multicast(why)) if hardware => {
            let node = fabric.node(first)?;
            ensure_eq!(*why, MulticastError::SameNode { first, second: first, node }, "U1: one node twice");
        }
        other => ensure!(!hardware && other == Ok(()), "U1: {other:?}"),
    }
    let nobody = Rank::new(fabric.ranks() as u32);
    let unknown = FabricError::NoSuchRank { rank: nobody, ranks: fabric.ranks() };
    ensure_eq!(Multicasts::reach(&fabric, &[first, nobody]), Err(unknown), "U1: a rank that does not exist");
    let refusal = |at: &[RemoteAddr], len| MulticastSpan::<u64>::new(&fabric, at, len).map(drop);
    let mut at: Vec<_> = members.iter().map(|rank| region.at(*rank, 8)).collect();
    for other in [region.at(last, 16), gone.at(last, 8)] {
        at[members.len() - 1] = other;
        let elsewhere = MulticastError::Elsewhere { one: at[0], other };
        let want = if first == last { Ok(()) } else { Err(elsewhere.into()) };
        ensure_eq!(refusal(&at, 1), want, "U2: another place");
    }
    let there = region.at(last, 8);
    ensure_eq!(refusal(&[there], 8), Err(FabricError::out_of_bounds(there, 64, 64)), "U2, M4: beyond the region");
    let odd = region.at(last, 4);
    ensure_eq!(refusal(&[odd], 1), Err(FabricError::misaligned(odd, 8)), "U2, M4: between two words");
    // Memory of the last member that has been dropped.
    let to = everywhere::<u64>(&fabric, (&gone, 0), &members, 8)?;
    world.barrier().await?;
    let key = gone.key();
    let mut gone = Some(gone);
    if fabric.rank() == last {
        gone = None;
    }
    world.barrier().await?;
    let stale = FabricError::StaleRegion { rank: last, region: key };
    ensure_eq!(to.put(&fabric, [3; 8]).await.err(), Some(stale), "U4, M3: a member's region that went");
    ensure_eq!(fabric.flush_all().await, Ok(()), "O13: what was refused is not told again");
    world.barrier().await?;
    drop(gone);
    Ok(())
}

pub(super) async fn multicasts_fail(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    if is_missing(&fabric)? {
        return only_the_loss(&fabric, loss).await;
    }
    let point = LossPoint::new(&fabric).await?;
    let (mut world, region) = world_and_region(&fabric, 512).await?;
    let (members, last) = (reachable(&fabric)?, victim(&fabric));
    let others = others(&mut world).await?;
    let members = if members.contains(&last) { members } else { vec![last] };
    let to = everywhere::<u64>(&fabric, (&region, 0), &members, 8)?;
    point.reached(loss).await?;
    notice_the_loss(&fabric).await?;
    let end = ended(&fabric, "E2: a multicast", to.put(&fabric, [1; 8])).await?.map(drop);
    ensure!(is_gone(&fabric, loss, &end), "E2, U4: a multicast to {members:?}: {end:?}");
    meet(others).await
}
