//! The futures that wait. Each can be dropped at any time and leaves nothing behind but, at most, a resumption of its
//! task that finds nothing to do.

use super::{
    core::Core, end_of_time::EndOfTime, fabric::VirtFabric, flush::Standing, memory::Loc, rank_state::Status,
    receive_queue::Ticket, watch::What,
};
use rdma_fabric::{AtomicWord, Deps, FabricError, Notice, Rank, Result, Time};
use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// A registered wait, ended when dropped.
pub(super) struct Registered<'a> {
    fabric: &'a VirtFabric,
    what: What,
    id: Option<u32>,
}

/// The number of a look that is no wait.
pub(super) const NO_WAIT: u32 = u32::MAX;

impl<'a> Registered<'a> {
    /// Not registered yet.
    pub(super) fn new(fabric: &'a VirtFabric, what: What) -> Self {
        Registered { fabric, what, id: None }
    }

    /// Registers the wait, unless it can't go on.
    pub(super) fn go_on(&mut self, core: &mut Core, deps: Deps<'_>) -> Result<()> {
        let me = self.fabric.rank;
        let id = *self.id.get_or_insert_with(|| core.watch(me, self.what));
        if matches!(self.what, What::Queue(..))
            && let Some(deadlock) = core.look_again(me, id)
        {
            return Err(deadlock);
        }
        match core.hopeless(me, id, deps) {
            None => Ok(()),
            // What this rank still owes may end it. It gets another turn when that is over.
            Some(FabricError::PeersLeft) if self.fabric.world.detached.has(me) => Ok(()),
            Some(error) => Err(error),
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.fabric.world.core().unwatch(self.fabric.rank, id);
        }
    }
}

pub(super) async fn until<W: AtomicWord>(
    fabric: &VirtFabric,
    word: &Loc,
    deps: Deps<'_>,
    mut until: impl FnMut(W) -> bool,
) -> Result<W> {
    let mut wait = Registered::new(fabric, What::Word(*word));
    poll_fn(|cx| {
        let value = {
            let core = fabric.world.core();
            core.check(word)?;
            W::from_bits(core.memory.load(word))
        };
        if until(value) {
            return Poll::Ready(Ok(value));
        }
        wait.go_on(&mut fabric.world.core(), deps)?;
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

pub(super) async fn notice(fabric: &VirtFabric, deps: Deps<'_>) -> Result<Notice> {
    let mut wait = Registered::new(fabric, What::Notice);
    poll_fn(|cx| {
        let mut core = fabric.world.core();
        if let Some(notice) = core.take_notice(fabric.rank) {
            return Poll::Ready(Ok(notice));
        }
        wait.go_on(&mut core, deps)?;
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

/// Waits until a time; never ends if that is the end of time.
pub(super) async fn sleep(fabric: VirtFabric, at: u64) {
    let mut set = false;
    poll_fn(|cx| {
        let mut core = fabric.world.core();
        if core.now_of(fabric.rank) >= at {
            return Poll::Ready(());
        }
        if !mem::replace(&mut set, true) {
            core.wake_at(fabric.rank, at);
        }
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await;
}

/// Keeps the CPU busy for `picos` from the first poll on.
pub(super) async fn busy(fabric: VirtFabric, picos: u64) {
    if picos == 0 {
        return;
    }
    let end = {
        let mut core = fabric.world.core();
        let begin = core.now_of(fabric.rank);
        let end = begin.saturating_add(picos);
        if end == u64::MAX {
            let lasts = Duration::from_nanos(picos / 1000);
            core.beyond = Some((fabric.rank, EndOfTime { at: Time::from_picos(begin), lasts }));
        } else {
            core.ranks[fabric.rank as usize].cpu_until = end;
            core.seen_computing(fabric.rank, begin, end);
            core.wake_at(fabric.rank, end);
        }
        end
    };
    poll_fn(|cx| {
        if end == u64::MAX {
            // The rank asks for a turn and is ended instead.
            cx.waker().wake_by_ref();
        } else if fabric.world.core().now >= end {
            return Poll::Ready(());
        }
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await;
}

/// Waits until all puts to a target, or all puts, are visible and the rank knows it.
pub(super) async fn flush(fabric: VirtFabric, target: Option<Rank>) -> Result<()> {
    let me = fabric.rank as usize;
    let number = target.map(Rank::number);
    let mut set = 0;
    poll_fn(|cx| {
        let mut core = fabric.world.core();
        if let Some(rank) = target {
            match core.status_of(rank.number()) {
                None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
                Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
                Some(_) => {}
            }
        }
        let now = core.now;
        let standing = core.ranks[me].existing().map_or(Standing::Done, |extra| extra.unflushed.standing(number, now));
        match standing {
            Standing::Done => {
                let error = core.ranks[me].existing().and_then(|extra| extra.unflushed.take_error(number));
                return Poll::Ready(error.map_or(Ok(()), Err));
            }
            Standing::At(time) if set != time => {
                set = time;
                core.wake_at(fabric.rank, time);
            }
            Standing::At(_) | Standing::Told => {}
        }
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

/// Waits for room in the own transmit queue and, if asked, in a target's notice queue.
#[derive(Debug)]
pub(super) struct Room {
    fabric: VirtFabric,
    target: Option<Rank>,
    /// Number in the own queue's line.
    own: Option<u64>,
    /// Place in the target's line.
    theirs: Option<Ticket>,
}

impl Room {
    pub(super) fn new(fabric: VirtFabric, target: Option<Rank>) -> Self {
        Room { fabric, target, own: None, theirs: None }
    }

    fn has_own_room(&mut self, core: &mut Core) -> bool {
        let me = self.fabric.rank;
        let full = core.is_full(me);
        let next = core.next_ticket;
        let line = &mut core.ranks[me as usize].extra().room_line;
        let first = line.front().copied();
        if !full && (first.is_none() || first == self.own) {
            if self.own.take().is_some() {
                line.pop_front();
            }
            // Whoever is next may find room as well.
            if !line.is_empty() {
                core.wake(me);
            }
            return true;
        }
        if self.own.is_none() {
            self.own = Some(next);
            line.push_back(next);
            core.next_ticket += 1;
        }
        false
    }

    fn has_their_room(&mut self, core: &mut Core, target: Rank) -> bool {
        let me = self.fabric.rank;
        let depth = core.timing.receive_queue;
        let number = core.next_ticket;
        let queue = &mut core.ranks[target.index()].extra().receive_queue;
        match self.theirs {
            None if queue.has_room(me, depth) => true,
            None => {
                let ticket = Ticket { rank: me, number };
                queue.queue_up(ticket);
                self.theirs = Some(ticket);
                core.next_ticket += 1;
                false
            }
            Some(ticket) if queue.is_granted(ticket) => {
                // The place is kept until this rank posts.
                self.theirs = None;
                true
            }
            Some(_) => false,
        }
    }

    fn stands(&mut self) -> Poll<Result<()>> {
        let world = std::rc::Rc::clone(&self.fabric.world);
        let mut core = world.core();
        if let Some(rank) = self.target {
            match core.status_of(rank.number()) {
                None => return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })),
                Some(Status::Lost) => return Poll::Ready(Err(FabricError::PeerLost { rank })),
                Some(Status::Finished) => {}
                Some(Status::Running) => {
                    if !self.has_their_room(&mut core, rank) {
                        return Poll::Pending;
                    }
                }
            }
        }
        if self.has_own_room(&mut core) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Future for Room {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let stands = me.stands();
        if stands.is_pending() {
            me.fabric.world.listen(me.fabric.rank, cx);
        }
        stands
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.own.is_none() && self.theirs.is_none() {
            return;
        }
        let mut core = self.fabric.world.core();
        let me = self.fabric.rank;
        if let (Some(number), Some(extra)) = (self.own, core.ranks[me as usize].existing()) {
            extra.room_line.retain(|n| *n != number);
            core.wake(me);
        }
        if let (Some(ticket), Some(target)) = (self.theirs, self.target) {
            let depth = core.timing.receive_queue;
            let next = core.ranks[target.index()].existing().and_then(|e| e.receive_queue.give_up(ticket, depth));
            if let Some(next) = next {
                core.wake(next);
            }
        }
    }
}
