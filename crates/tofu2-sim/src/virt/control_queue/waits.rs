//! The futures that wait for a queue.

use super::{
    super::{waits::Registered, watch::What},
    handle::Queue,
    report::Side,
};
use rdma_fabric::{
    ControlQueue, Deps, Refused, Result,
    control_queue::{Completion, MrqNotice, Posting},
};
use std::{future::poll_fn, task::Poll};

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
    let mut wait = Registered::new(fabric, What::Queue(queue.slot, Side::Room));
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
        wait.go_on(&mut core, deps)?;
        drop(core);
        fabric.world.listen(fabric.rank, cx);
        Poll::Pending
    })
    .await
}

pub(super) async fn completion(queue: &Queue, deps: Deps<'_>) -> Result<Completion> {
    let fabric = &queue.fabric;
    let mut wait = Registered::new(fabric, What::Queue(queue.slot, Side::Tcq));
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
    let mut wait = Registered::new(fabric, What::Queue(queue.slot, Side::Mrq));
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
