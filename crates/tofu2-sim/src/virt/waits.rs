//! Waits. What one has to remember between two polls is in its slot; one that is given up leaves
//! nothing behind but, at most, a resumption of its task that finds nothing to do.

use super::{
    core::Core,
    end_of_time::EndOfTime,
    flush::Standing,
    provider::{Me, loc},
    rank_state::Status,
    receive_queue::Ticket,
    watch::What,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result, Time,
    provider::{Goal, Slot},
};
use std::{
    mem,
    task::{Context, Poll},
    time::Duration,
};

/// The number of a look that is no wait.
pub(super) const NO_WAIT: u32 = u32::MAX;

impl Me {
    /// Whether a wait is over. What the slot's words hold is up to the goal.
    #[inline]
    pub(super) fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut core = self.world.core();
        let Slot([first, second, ..]) = slot;
        let stands = match goal {
            Goal::Word(word, deps) => self.watch(&mut core, first, What::Word(loc(word)), deps),
            Goal::Notice(deps) => self.watch(&mut core, first, What::Notice, deps),
            Goal::Room(target) => self.room(&mut core, first, second, target),
            Goal::Flush(target) => self.flush(&mut core, first, target),
            Goal::Until(at) => self.sleep(&mut core, first, at),
            Goal::Busy(lasts) => self.busy(&mut core, first, |_| picos(lasts), cx),
            Goal::Charge(layer) => self.busy(&mut core, first, |core| core.timing.software(layer), cx),
        };
        drop(core);
        if stands.is_pending() {
            self.world.listen(self.rank, cx);
        }
        stands
    }

    /// A wait has ended, of which the slot remembers something.
    pub(super) fn end_wait(&self, slot: &mut Slot, goal: Goal<'_>) {
        let Slot([first, second, ..]) = slot;
        match goal {
            Goal::Word(..) | Goal::Notice(_) => self.unwatch(&mut self.world.core(), first),
            Goal::Room(target) => self.leave_lines(&mut self.world.core(), first, second, target),
            Goal::Flush(_) | Goal::Until(_) | Goal::Busy(_) | Goal::Charge(_) => {}
        }
        *slot = Slot::default();
    }

    // ----- waits for what others do --------------------------------------------------------------

    /// Registers a wait, whose number and 1 are kept in `wait`. It is pending, unless it can't go
    /// on.
    fn watch(&self, core: &mut Core, wait: &mut u64, what: What, deps: Deps<'_>) -> Poll<Result<()>> {
        match self.go_on(core, wait, what, deps) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Registers a wait, whose number and 1 are kept in `wait`, unless it can't go on.
    pub(super) fn go_on(&self, core: &mut Core, wait: &mut u64, what: What, deps: Deps<'_>) -> Result<()> {
        let me = self.rank;
        if *wait == 0 {
            *wait = u64::from(core.watch(me, what)) + 1;
        }
        let id = (*wait - 1) as u32;
        if matches!(what, What::Queue(..))
            && let Some(deadlock) = core.look_again(me, id)
        {
            return Err(deadlock);
        }
        match core.hopeless(me, id, deps) {
            None => Ok(()),
            // What this rank still owes may end it. It gets another turn when that is over.
            Some(FabricError::PeersLeft) if self.world.detached.has(me) => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Ends a wait that was registered.
    pub(super) fn unwatch(&self, core: &mut Core, wait: &mut u64) {
        if let Some(id) = mem::take(wait).checked_sub(1) {
            core.unwatch(self.rank, id as u32);
        }
    }

    // ----- waits for time ------------------------------------------------------------------------

    /// Waits until a time; never ends if that is the end of time. `set` says that the rank will be
    /// woken.
    fn sleep(&self, core: &mut Core, set: &mut u64, at: Time) -> Poll<Result<()>> {
        if core.now_of(self.rank) >= at.as_picos() {
            return Poll::Ready(Ok(()));
        }
        if mem::replace(set, 1) == 0 {
            core.wake_at(self.rank, at.as_picos());
        }
        Poll::Pending
    }

    /// Keeps the CPU busy for so many picoseconds from the first poll on, until `end`.
    fn busy(
        &self,
        core: &mut Core,
        end: &mut u64,
        picos: impl FnOnce(&Core) -> u64,
        cx: &Context<'_>,
    ) -> Poll<Result<()>> {
        if *end == 0 {
            let picos = picos(core);
            if picos == 0 {
                return Poll::Ready(Ok(()));
            }
            let begin = core.now_of(self.rank);
            *end = begin.saturating_add(picos);
            if *end == u64::MAX {
                let lasts = Duration::from_nanos(picos / 1000);
                core.beyond = Some((self.rank, EndOfTime { at: Time::from_picos(begin), lasts }));
            } else {
                core.ranks[self.rank as usize].cpu_until = *end;
                core.seen_computing(self.rank, begin, *end);
                core.wake_at(self.rank, *end);
            }
        }
        if *end == u64::MAX {
            // The rank asks for a turn and is ended instead.
            cx.waker().wake_by_ref();
        } else if core.now >= *end {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Waits until all puts to a target, or all puts, are visible and the rank knows it. `set` is
    /// when it will be woken.
    fn flush(&self, core: &mut Core, set: &mut u64, target: Option<Rank>) -> Poll<Result<()>> {
        if let Some(rank) = target {
            match core.status_of(rank.number()) {
                None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
                Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
                Some(_) => {}
            }
        }
        let (number, now) = (target.map(Rank::number), core.now);
        let Some(extra) = core.ranks[self.rank as usize].existing() else { return Poll::Ready(Ok(())) };
        match extra.unflushed.standing(number, now) {
            Standing::Done => {
                let error = extra.unflushed.take_error(number);
                return Poll::Ready(error.map_or(Ok(()), Err));
            }
            Standing::At(time) if *set != time => {
                *set = time;
                core.wake_at(self.rank, time);
            }
            Standing::At(_) | Standing::Told => {}
        }
        Poll::Pending
    }

    // ----- waits for room ------------------------------------------------------------------------

    /// Waits for room in the own transmit queue and, if asked, in a target's notice queue. `own`
    /// and `theirs` are the tickets that this rank has in the lines for them, and 1.
    fn room(&self, core: &mut Core, own: &mut u64, theirs: &mut u64, target: Option<Rank>) -> Poll<Result<()>> {
        if let Some(rank) = target {
            match core.status_of(rank.number()) {
                None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
                Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
                Some(Status::Finished) => {}
                Some(Status::Running) => {
                    if !self.has_their_room(core, theirs, rank) {
                        return Poll::Pending;
                    }
                }
            }
        }
        if self.has_own_room(core, own) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn has_own_room(&self, core: &mut Core, own: &mut u64) -> bool {
        let full = core.is_full(self.rank);
        let next = core.next_ticket;
        let line = &mut core.ranks[self.rank as usize].extra().room_line;
        let first = line.front().copied();
        if !full && (first.is_none() || first == own.checked_sub(1)) {
            if mem::take(own) > 0 {
                line.pop_front();
            }
            // Whoever is next may find room as well.
            if !line.is_empty() {
                core.wake(self.rank);
            }
            return true;
        }
        if *own == 0 {
            *own = next + 1;
            line.push_back(next);
            core.next_ticket += 1;
        }
        false
    }

    fn has_their_room(&self, core: &mut Core, theirs: &mut u64, target: Rank) -> bool {
        let me = self.rank;
        let depth = core.timing.receive_queue;
        let number = core.next_ticket;
        let queue = &mut core.ranks[target.index()].extra().receive_queue;
        match theirs.checked_sub(1) {
            None if queue.has_room(me, depth) => true,
            None => {
                queue.queue_up(Ticket { rank: me, number });
                *theirs = number + 1;
                core.next_ticket += 1;
                false
            }
            Some(number) if queue.is_granted(Ticket { rank: me, number }) => {
                // The place is kept until this rank posts.
                *theirs = 0;
                true
            }
            Some(_) => false,
        }
    }

    /// Gives up what a wait for room has in lines.
    fn leave_lines(&self, core: &mut Core, own: &mut u64, theirs: &mut u64, target: Option<Rank>) {
        let me = self.rank;
        if let (Some(number), Some(extra)) = (own.checked_sub(1), core.ranks[me as usize].existing()) {
            extra.room_line.retain(|n| *n != number);
            core.wake(me);
        }
        if let (Some(number), Some(target)) = (theirs.checked_sub(1), target) {
            let (ticket, depth) = (Ticket { rank: me, number }, core.timing.receive_queue);
            let next = core.ranks[target.index()].existing().and_then(|e| e.receive_queue.give_up(ticket, depth));
            if let Some(next) = next {
                core.wake(next);
            }
        }
    }
}

fn picos(lasts: Duration) -> u64 {
    u64::try_from(lasts.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX)
}
