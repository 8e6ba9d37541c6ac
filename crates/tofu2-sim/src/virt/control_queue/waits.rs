//! Waits for a queue.

use super::{
    super::{
        core::Core,
        ranks::{QueueReport, Watched},
    },
    handle::Open,
};
use rdma_fabric::{
    Deps, FabricError, Refused, Result,
    control_queue::Posting,
    provider::{Side, Slot},
};
use std::{
    mem,
    task::{Context, Poll},
};

/// What a wait remembers.
struct Memory<'a> {
    /// The number of the registered wait, and 1.
    wait: &'a mut u64,
    /// 1: it seemed hopeless when it looked last.
    warned: &'a mut u64,
    /// The ticket in the line of those who want room, and 1.
    ticket: &'a mut u64,
    /// When the rank will be woken, and 1.
    timer: &'a mut u64,
}

impl<'a> Memory<'a> {
    fn of(slot: &'a mut Slot) -> Self {
        let Slot([wait, warned, ticket, timer]) = slot;
        Memory { wait, warned, ticket, timer }
    }
}

impl Open {
    /// Registers the wait, unless it can't go on. That all peers have left is believed at the second look: other parts of the
    /// same task may be about to post.
    fn go_on(&self, core: &mut Core, memory: &mut Memory<'_>, want: QueueReport, deps: Deps<'_>) -> Result<()> {
        match self.me.go_on(core, memory.wait, Watched::Queue(self.slot, want), deps) {
            Err(FabricError::PeersLeft) if mem::replace(memory.warned, 1) == 0 => {
                let now = core.clock.now();
                core.clock.wake_at(self.me.rank, now);
                Ok(())
            }
            Ok(()) => {
                *memory.warned = 0;
                Ok(())
            }
            error => error,
        }
    }

    pub(super) fn poll_post(
        &self,
        slot: &mut Slot,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let mut memory = Memory::of(slot);
        let mut core = self.core()?;
        match core.post_command(self.slot, posting, memory.ticket.checked_sub(1)) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(Refused::Failed(error, ())) => return Poll::Ready(Err(error)),
            Err(Refused::Full(())) => {}
        }
        if *memory.ticket == 0 {
            let ticket = core.ranks.next_ticket();
            core.queues.get_mut(self.slot).line.push_back(ticket);
            *memory.ticket = ticket + 1;
        }
        match self.go_on(&mut core, &mut memory, QueueReport::Room, deps) {
            // A rank of its own drains its queues itself, if anybody does: a deadlock will tell.
            Err(FabricError::PeersLeft) if core.ranks.len() == 1 => {}
            gone_on => gone_on?,
        }
        drop(core);
        self.me.world.listen(self.me.rank, cx);
        Poll::Pending
    }

    pub(super) fn poll_wait(
        &self,
        slot: &mut Slot,
        side: Side,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let mut memory = Memory::of(slot);
        let mut core = self.core()?;
        let want = match side {
            Side::Completion => QueueReport::Completion,
            Side::Notice => QueueReport::Notice,
        };
        match core.queues.get(self.slot).completion_at().filter(|_| side == Side::Completion) {
            // It will come whatever happens to the peers.
            Some(at) => {
                let until = at.saturating_add(1);
                if mem::replace(memory.timer, until) != until {
                    core.clock.wake_at(self.me.rank, at);
                }
            }
            None => self.go_on(&mut core, &mut memory, want, deps)?,
        }
        drop(core);
        self.me.world.listen(self.me.rank, cx);
        Poll::Pending
    }

    pub(super) fn end_wait(&self, slot: &mut Slot) {
        let memory = Memory::of(slot);
        if let Some(ticket) = memory.ticket.checked_sub(1)
            && let Ok(mut core) = self.core()
        {
            core.queues.get_mut(self.slot).line.retain(|other| *other != ticket);
            // Whoever is next may find room.
            core.ranks.wake(self.me.rank);
        }
        self.me.unwatch(&mut self.me.world.core(), memory.wait);
        *slot = Slot::default();
    }
}
