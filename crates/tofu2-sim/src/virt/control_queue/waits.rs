//! The futures that wait for a queue.

use super::{
    super::{core::Core, waits::Registered, watch::What},
    handle::Queue,
    report::Side,
};
use rdma_fabric::{
    ControlQueue, Deps, FabricError, Refused, Result,
    control_queue::{Completion, MrqNotice, Posting},
};
use std::{future::poll_fn, mem, task::Poll};

/// A registered wait.
struct Waiting<'a> {
    registered: Registered<'a>,
    rank: u32,
    /// It seemed hopeless when it looked last.
    warned: bool,
}

impl<'a> Waiting<'a> {
    fn new(queue: &'a Queue, side: Side) -> Self {
        let registered = Registered::new(&queue.fabric, What::Queue(queue.slot, side));
        Waiting { registered, rank: queue.fabric.rank, warned: false }
    }

    /// Registers the wait, unless it can't go on. That all peers have left is believed at the second look: other parts of the
    /// same task may be about to post.
    fn go_on(&mut self, core: &mut Core, deps: Deps<'_>) -> Result<()> {
        match self.registered.go_on(core, deps) {
            Err(FabricError::PeersLeft) if !mem::replace(&mut self.warned, true) => {
                let now = core.now;
                core.wake_at(self.rank, now);
                Ok(())
            }
            Ok(()) => {
                self.warned = false;
                Ok(())
            }
            error => error,
        }
    }
}

/// A place in the line of those who wait for room, given up when dropped.
struct Place<'a> {
    queue: &'a Queue,
    ticket: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let Ok(mut core) = self.queue.core() else { return };
        core.queues.leave_line(self.queue.slot, ticket);
        // Whoever is next may find room.
        core.wake(self.queue.fabric.rank);
    }
}

pub(super) async fn post(queue: &Queue, posting: Posting, deps: Deps<'_>) -> Result<()> {
    let fabric = &queue.fabric;
    let mut wait = Waiting::new(queue, Side::Room);
    let mut place = Place { queue, ticket: None };
    poll_fn(|cx| {
        let mut core = queue.core()?;
        match core.post_command(queue.slot, &posting, place.ticket) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(Refused::Failed(error, ())) => return Poll::Ready(Err(error)),
            Err(Refused::Full(())) => {}
        }
        if place.ticket.is_none() {
            let ticket = core.next_ticket;
            core.next_ticket += 1;
            core.queues.join_line(queue.slot, ticket);
            place.ticket = Some(ticket);
        }
        match wait.go_on(&mut core, deps) {
            // A rank of its own drains its queues itself, if anybody does: a deadlock will tell.
            Err(FabricError::PeersLeft) if core.ranks.len() == 1 => {}
            gone_on => gone_on?,
        }
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

pub(super) async fn completion(queue: &Queue, deps: Deps<'_>) -> Result<Completion> {
    let fabric = &queue.fabric;
    let mut wait = Waiting::new(queue, Side::Tcq);
    let mut timer = None;
    poll_fn(|cx| {
        if let Some(completion) = queue.poll_tcq()? {
            return Poll::Ready(Ok(completion));
        }
        let mut core = queue.core()?;
        match core.completion_at(queue.slot) {
            // It will come whatever happens to the peers.
            Some(at) if timer != Some(at) => {
                timer = Some(at);
                core.wake_at(fabric.rank, at);
            }
            Some(_) => {}
            None => wait.go_on(&mut core, deps)?,
        }
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

pub(super) async fn notice(queue: &Queue, deps: Deps<'_>) -> Result<MrqNotice> {
    let fabric = &queue.fabric;
    let mut wait = Waiting::new(queue, Side::Mrq);
    poll_fn(|cx| {
        if let Some(notice) = queue.poll_mrq()? {
            return Poll::Ready(Ok(notice));
        }
        wait.go_on(&mut *queue.core()?, deps)?;
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}
