//! Polls by the program: whether an operation has completed, whether puts are visible, and whether
//! there is room.

use super::{
    core::{Core, State},
    net::Net,
    remote_rank::NOTICES,
};
use core::task::{Context, Poll, Waker};
use rdma_fabric::{
    FabricError, Rank, Result,
    provider::{Sink, Token, WaitState},
};
use tofu2_shm::part::Fate;

/// Polls an operation.
pub(super) fn operation(net: &Net, token: Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
    let id = token.0.get();
    net.polling(cx, false, |state, cx, looks| {
        let unknown = FabricError::Unsupported { feature: &"an operation of another provider" };
        // The polling task need not be woken by its own progress.
        let waker = state.core.flights.get(id).and_then(|flight| flight.waker.take());
        if looks {
            state.progress();
        }
        let core = &mut state.core;
        let Some(flight) = core.flights.get(id) else {
            core.shed.extend(waker);
            return Poll::Ready(Err(unknown));
        };
        if flight.outcome.is_none() {
            let (kept, shed) = keep(waker, cx.waker());
            flight.waker = Some(kept);
            core.shed.extend(shed);
            return Poll::Pending;
        }
        core.shed.extend(waker);
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

/// Returns the waker to store, and the stored one if that is a different waker.
fn keep(left: Option<Waker>, now: &Waker) -> (Waker, Option<Waker>) {
    match left {
        Some(left) if left.will_wake(now) => (left, None),
        other => (now.clone(), other),
    }
}

/// Polls whether the puts that were posted before the first poll, to a rank of another node or to
/// all ranks, are visible.
pub(super) fn flush(
    net: &Net,
    wait_state: &mut WaitState,
    rank: Option<Rank>,
    cx: &mut Context<'_>,
) -> Poll<Result<()>> {
    if wait_state.is_empty() && !net.has_unreported() {
        return Poll::Ready(rank.and_then(|rank| net.objection(rank)).map_or(Ok(()), Err));
    }
    net.polling(cx, wait_state.is_empty(), |state, cx, looks| {
        state.poll_without(cx.waker(), looks);
        let core = &mut state.core;
        let puts = match rank {
            Some(rank) => &core.remote(rank.number()).puts,
            None => &core.puts,
        };
        if wait_state.is_empty() {
            wait_state.0 = [1, puts.next(), 0, 0];
        }
        let pending = !puts.is_past(wait_state.0[1]);
        if let Some(error) = rank.and_then(|rank| core.part.objection(rank)) {
            return Poll::Ready(Err(error));
        }
        if pending {
            state.confirm(rank.map(Rank::number));
            let core = &mut state.core;
            // Once the job has been aborted, the visibility of the puts may never be reported.
            if let Some(error) = core.part.objection(Rank::new(core.me)) {
                return Poll::Ready(Err(error));
            }
            core.wait(cx.waker());
            return Poll::Pending;
        }
        Poll::Ready(core.report_error(rank).map_or(Ok(()), Err))
    })
}

impl State {
    /// Makes progress if requested. First removes the waker of the polling task, which stores it
    /// again if it remains pending.
    fn poll_without(&mut self, waker: &Waker, wanted: bool) {
        if !wanted {
            return;
        }
        if let Some(left) = self.core.waiters.iter().position(|waiter| waiter.will_wake(waker)) {
            let left = self.core.waiters.swap_remove(left);
            self.core.shed.push(left);
        }
        self.progress();
    }
}

impl Core {
    /// Takes the unreported error of puts to a rank, or to any rank. Errors of lost ranks are
    /// dropped.
    fn report_error(&mut self, rank: Option<Rank>) -> Option<FabricError> {
        self.errors.retain(|rank, _| !self.lost.contains(rank));
        let rank = rank.map(Rank::number).or_else(|| self.errors.keys().next().copied())?;
        self.errors.remove(&rank)
    }
}

/// Polls whether an operation can start and, if a rank is given, a put with a notice to it.
pub(super) fn room(
    net: &Net,
    wait_state: &mut WaitState,
    rank: Option<Rank>,
    cx: &mut Context<'_>,
) -> Poll<Result<()>> {
    let first = wait_state.is_empty();
    wait_state.0[0] = 1;
    net.polling(cx, first, |state, cx, looks| {
        state.poll_without(cx.waker(), looks);
        if let Some(error) = rank.and_then(|rank| net.objection(rank)).or_else(|| net.objection(net.me)) {
            return Poll::Ready(Err(error));
        }
        let core = &mut state.core;
        core.is_whole()?;
        let notices = rank.map_or(0, |rank| core.remote(rank.number()).notices);
        if core.has_room() && notices < NOTICES {
            return Poll::Ready(Ok(()));
        }
        // A rank that has left accepts no more notices.
        if notices >= NOTICES && rank.is_some_and(|rank| core.part.fate(rank) == Fate::Left) {
            return Poll::Ready(Err(FabricError::PeersLeft));
        }
        core.wait(cx.waker());
        Poll::Pending
    })
}
