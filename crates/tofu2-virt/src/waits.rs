//! Waits. A wait's state is kept by its caller between two polls. An abandoned wait leaves nothing
//! behind except, at most, a wake-up of its task that finds nothing to do.

use super::{
    core::Core,
    provider::Me,
    ranks::{FlushState, Status, Watched},
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result, Time,
    provider::{WaitFor, WaitState},
};
use std::{
    mem,
    task::{Context, Poll},
    time::Duration,
};

/// The number of a wait that is only polled once and not registered.
pub(super) const NO_WAIT: u32 = u32::MAX;

impl Me {
    /// Polls a wait. The meaning of the state's words depends on what the wait is for.
    #[inline]
    pub(super) fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        wait_for: WaitFor<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let lane = self.lane();
        let mut core = self.world.core();
        // A wait that another lane has begun registers this lane's wake-up as well.
        let WaitState([first, second, begun_by, polled_by]) = wait_state;
        let this = u64::from(lane) + 1;
        let moved = *polled_by != this;
        let stands = match wait_for {
            WaitFor::Word(word, deps) => match self.loc(word) {
                Ok(word) => self.watch(&mut core, lane, first, Watched::Word(word), deps),
                Err(error) => Poll::Ready(Err(error)),
            },
            WaitFor::Notice(deps) => self.watch(&mut core, lane, first, Watched::Notice, deps),
            WaitFor::Room(target) => {
                if moved && let Some(before) = begun(&core, *begun_by) {
                    leave_lines(&mut core, before, [mem::take(first), mem::take(second)], target);
                }
                *begun_by = 0;
                room(&mut core, lane, first, second, target)
            }
            WaitFor::Flush(target) => {
                let poster = begun(&core, *begun_by).unwrap_or(lane);
                flush(&mut core, [poster, lane], moved, first, target)
            }
            WaitFor::Until(at) => sleep(&mut core, lane, moved, at),
            WaitFor::Busy(lasts) => busy(&mut core, lane, moved, first, |_| picos(lasts), cx),
            WaitFor::Charge(layer, bytes) => {
                busy(&mut core, lane, moved, first, |core| core.machine.timing.software.cost(layer, bytes as u64), cx)
            }
        };
        drop(core);
        if stands.is_pending() {
            *polled_by = this;
            if *begun_by == 0 {
                *begun_by = this;
            }
            self.world.listen(lane, cx);
        }
        stands
    }

    /// Ends a wait that has state.
    pub(super) fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>) {
        let WaitState([first, second, begun_by, _]) = wait_state;
        match wait_for {
            WaitFor::Word(..) | WaitFor::Notice(_) => self.unwatch(&mut self.world.core(), first),
            WaitFor::Room(target) => {
                let mut core = self.world.core();
                let lane = begun(&core, *begun_by).unwrap_or_else(|| self.lane());
                leave_lines(&mut core, lane, [*first, *second], target);
            }
            WaitFor::Flush(_) | WaitFor::Until(_) | WaitFor::Busy(_) | WaitFor::Charge(..) => {}
        }
        *wait_state = WaitState::default();
    }

    // ----- waits for other ranks -----------------------------------------------------------------

    /// Registers a wait. Returns pending, unless the wait can't continue.
    fn watch(&self, core: &mut Core, lane: u32, wait: &mut u64, what: Watched, deps: Deps<'_>) -> Poll<Result<()>> {
        match self.advance(core, lane, wait, what, deps) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Registers a wait, unless it can't continue; `wait` keeps its lane and its number plus 1.
    pub(super) fn advance(
        &self,
        core: &mut Core,
        lane: u32,
        wait: &mut u64,
        what: Watched,
        deps: Deps<'_>,
    ) -> Result<()> {
        if *wait >> 32 != u64::from(lane) {
            // Another lane has taken over.
            self.unwatch(core, wait);
        }
        if *wait == 0 {
            *wait = (u64::from(lane) << 32) | (u64::from(core.ranks.watch(lane, what)) + 1);
        }
        let id = (*wait as u32).wrapping_sub(1);
        if matches!(what, Watched::Queue(..))
            && let Some(deadlock) = core.ranks.poll_again(lane, id)
        {
            return Err(deadlock);
        }
        match core.ranks.hopeless(lane, id, deps) {
            None => Ok(()),
            // The task's detached futures may still end the wait. The task is polled again when
            // they have finished.
            Some(FabricError::PeersLeft) if self.world.detached.has(lane) => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Unregisters a wait.
    pub(super) fn unwatch(&self, core: &mut Core, wait: &mut u64) {
        let wait = mem::take(wait);
        let lane = (wait >> 32) as u32;
        if wait != 0 && core.ranks.has_lane(lane) {
            core.ranks.unwatch(lane, (wait as u32).wrapping_sub(1));
        }
    }
}

/// Returns the lane that has begun a wait; `None` for a wait state that does not hold a lane's
/// number plus 1.
fn begun(core: &Core, begun_by: u64) -> Option<u32> {
    let lane = u32::try_from(begun_by.checked_sub(1)?).ok()?;
    core.ranks.has_lane(lane).then_some(lane)
}

// ----- waits for time ------------------------------------------------------------------------

/// Waits until a time; never ends if that is the end of time. `new` is true if this lane has not
/// requested to be woken.
fn sleep(core: &mut Core, lane: u32, new: bool, at: Time) -> Poll<Result<()>> {
    if core.now_of(lane) >= at.as_picos() {
        return Poll::Ready(Ok(()));
    }
    if new {
        core.clock.wake_at(lane, at.as_picos());
    }
    Poll::Pending
}

/// Keeps the CPU busy for `picos` picoseconds from the first poll; `end` records the time at which
/// that ends. `new` is true if this lane has not requested to be woken then.
fn busy(
    core: &mut Core,
    lane: u32,
    new: bool,
    end: &mut u64,
    picos: impl FnOnce(&Core) -> u64,
    cx: &Context<'_>,
) -> Poll<Result<()>> {
    if *end == 0 {
        let picos = picos(core);
        if picos == 0 {
            return Poll::Ready(Ok(()));
        }
        let begin = core.now_of(lane);
        *end = begin.saturating_add(picos);
        if *end == u64::MAX {
            let lasts = Duration::from_nanos(picos / 1000);
            core.ranks.set_out_of_time(lane, EndOfTime { at: Time::from_picos(begin), lasts });
        } else {
            core.ranks.occupy_cpu(lane, core.clock.now(), picos);
            if let Some(timeline) = &mut core.timeline {
                timeline.computing(&core.machine, lane, begin, *end);
            }
            core.clock.wake_at(lane, *end);
        }
    } else if new && *end != u64::MAX {
        core.clock.wake_at(lane, *end);
    }
    if *end == u64::MAX {
        // The rank requests another turn and is ended instead.
        cx.waker().wake_by_ref();
    } else if core.clock.now() >= *end {
        return Poll::Ready(Ok(()));
    }
    Poll::Pending
}

/// Waits until all of a poster's puts to a target, or all its puts, are visible and the poster
/// knows it. `set` records the time at which the waiting lane will be woken; `new` is true if it
/// has not requested that.
fn flush(
    core: &mut Core,
    [poster, lane]: [u32; 2],
    new: bool,
    set: &mut u64,
    target: Option<Rank>,
) -> Poll<Result<()>> {
    if let Some(rank) = target {
        match core.ranks.status_of(rank.number()) {
            None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
            Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
            Some(_) => {}
        }
    }
    match core.ranks.flush([poster, lane], target.map(Rank::number), core.clock.now()) {
        FlushState::Complete(result) => return Poll::Ready(result),
        FlushState::KnownAt(time) if new || *set != time => {
            *set = time;
            core.clock.wake_at(lane, time);
        }
        FlushState::KnownAt(_) | FlushState::Pending => {}
    }
    Poll::Pending
}

// ----- waits for room ------------------------------------------------------------------------

/// Waits for room in the rank's own transmit queue and, if requested, in a target's notice queue.
/// `own` and `theirs` hold this rank's tickets in the lines for them, plus 1.
fn room(core: &mut Core, lane: u32, own: &mut u64, theirs: &mut u64, target: Option<Rank>) -> Poll<Result<()>> {
    if let Some(rank) = target {
        match core.ranks.status_of(rank.number()) {
            None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
            Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
            Some(Status::Finished) => {}
            Some(Status::Running) => {
                let depth = core.machine.timing.receive_queue;
                if !core.ranks.await_notice_room(lane, rank.number(), depth, theirs) {
                    let me = core.ranks.rank_of(lane);
                    if core.ranks.has_helper_failed(me) {
                        return Poll::Ready(Err(FabricError::HelperFailed { rank: Rank::new(me) }));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
    let has_room = core.ranks.await_own_room(lane, core.machine.timing.transmit_queue, own);
    if has_room { Poll::Ready(Ok(())) } else { Poll::Pending }
}

/// Takes a lane's wait for room out of the lines.
fn leave_lines(core: &mut Core, lane: u32, [own, theirs]: [u64; 2], target: Option<Rank>) {
    let depth = core.machine.timing.receive_queue;
    core.ranks.leave_lines(lane, own, theirs, target.map(Rank::number), depth);
}

fn picos(lasts: Duration) -> u64 {
    u64::try_from(lasts.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX)
}

/// The error of a rank that wanted to compute past the end of virtual time: 64 bits of picoseconds
/// cover 213 days. Its [`RankFailed`](crate::JobError::RankFailed) holds this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("virtual time ends at {}: at {at} there is not enough left to compute for {} s", Time::MAX, .lasts.as_secs_f64())]
pub struct EndOfTime {
    /// When the rank began to compute.
    pub at: Time,
    /// How long the rank wanted to compute.
    pub lasts: Duration,
}
