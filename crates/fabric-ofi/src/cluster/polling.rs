//! What a program asks for again and again: whether an operation is over, puts are visible, or there
//! is room.

use super::{far_rank::NOTICES, net::Net};
use core::task::{Context, Poll};
use rdma_fabric::{
    FabricError, Rank, Result,
    provider::{Sink, Slot, Token},
};
use tofu2_sim::shm::part::Fate;

/// Polls an operation.
pub(super) fn operation(net: &Net, token: Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
    let id = token.0.get();
    net.looking(|state| {
        let unknown = FabricError::Unsupported { feature: &"an operation of another provider" };
        let core = &mut state.core;
        let Some(flight) = core.flights.get(id) else { return Poll::Ready(Err(unknown)) };
        if flight.outcome.is_none() {
            core.shed.extend(flight.waker.replace(cx.waker().clone()));
            return Poll::Pending;
        }
        let Some(flight) = state.core.flights.remove(id) else { return Poll::Ready(Err(unknown)) };
        let outcome = flight.outcome.unwrap_or(Ok(0));
        if let (Sink::Bytes(to), Ok(word)) = (into, &outcome) {
            match &flight.bytes[..] {
                [] => {
                    let len = to.len().min(8);
                    to[..len].copy_from_slice(&word.to_le_bytes()[..len]);
                }
                bytes if bytes.len() == to.len() => to.copy_from_slice(bytes),
                _ => {}
            }
        }
        Poll::Ready(outcome)
    })
}

/// Polls whether the puts that were posted to a rank of another node, or to all, before the first
/// poll are visible.
pub(super) fn flush(net: &Net, slot: &mut Slot, rank: Option<Rank>, cx: &mut Context<'_>) -> Poll<Result<()>> {
    net.looking(|state| {
        let core = &mut state.core;
        let puts = match rank {
            Some(rank) => &core.far(rank.number()).puts,
            None => &core.puts,
        };
        if slot.is_empty() {
            slot.0 = [1, puts.next(), 0, 0];
        }
        let pending = !puts.is_past(slot.0[1]);
        if let Some(error) = rank.and_then(|rank| core.part.objection(rank)) {
            return Poll::Ready(Err(error));
        }
        if pending {
            // Nobody may ever tell that they are visible, once the job was ended.
            if let Some(error) = core.part.objection(Rank::new(core.me)) {
                return Poll::Ready(Err(error));
            }
            core.wait(cx.waker());
            return Poll::Pending;
        }
        let ranks: Vec<u32> = rank.map_or_else(|| core.ranks.keys().copied().collect(), |rank| vec![rank.number()]);
        let error = ranks.iter().find_map(|&number| {
            let lost = core.lost.contains(&number);
            core.far(number).error.take().filter(|_| !lost)
        });
        Poll::Ready(error.map_or(Ok(()), Err))
    })
}

/// Polls whether an operation may begin and, if a rank is given, a put with a notice to it.
pub(super) fn room(net: &Net, slot: &mut Slot, rank: Option<Rank>, cx: &mut Context<'_>) -> Poll<Result<()>> {
    slot.0[0] = 1;
    net.looking(|state| {
        if let Some(error) = rank.and_then(|rank| net.objection(rank)).or_else(|| net.objection(net.me)) {
            return Poll::Ready(Err(error));
        }
        let core = &mut state.core;
        core.is_whole()?;
        let notices = rank.map_or(0, |rank| core.far(rank.number()).notices);
        if core.has_room() && notices < NOTICES {
            return Poll::Ready(Ok(()));
        }
        // A rank that has left takes no more notices.
        if notices >= NOTICES && rank.is_some_and(|rank| core.part.fate(rank) == Fate::Left) {
            return Poll::Ready(Err(FabricError::PeersLeft));
        }
        core.wait(cx.waker());
        Poll::Pending
    })
}
