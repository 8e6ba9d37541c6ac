//! Control queues of a rank.

use super::{
    OwnMemory,
    link::Link,
    regions::{Bytes, Registered},
};
use crate::wire::{ParkUntil, Posted, Request};
use core::task::{Context, Poll};
use rdma_fabric::{
    Deps, FabricError, Refused, Region, Result,
    control_queue::{Completion, MrqNotice, Pointers, Posting, Queue, QueueId, QueueSide, QueueSpec, Stadd},
    provider::{Ended, WaitState},
};
use std::sync::Arc;

/// A queue that the simulator holds. Dropping it closes the queue.
#[derive(Debug)]
pub(super) struct SteppedQueue {
    link: Arc<Link>,
    queue: usize,
    id: QueueId,
    spec: QueueSpec,
    is_open: bool,
}

impl SteppedQueue {
    pub(super) fn new(link: Arc<Link>, queue: usize, id: QueueId, spec: QueueSpec) -> Self {
        let spec = QueueSpec { engine: Some(id.engine()), number: Some(id.number()), ..spec };
        SteppedQueue { link, queue, id, spec, is_open: true }
    }
}

impl SteppedQueue {
    /// Lets the task ask again after a turn, unless a rank is lost that it waits for.
    fn poll_again(&self, deps: Deps<'_>, cx: &Context<'_>) -> Poll<Result<()>> {
        match self.link.lost() {
            Some(rank) if deps.contains(rank, self.link.rank) => Poll::Ready(Err(FabricError::PeerLost { rank })),
            _ => {
                self.link.deferred().pause(ParkUntil::Turn);
                self.link.listen(cx).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
        }
    }
}

impl Drop for SteppedQueue {
    fn drop(&mut self) {
        if self.is_open {
            // The simulator closes what is left when the process ends.
            let _ = self.link.call::<u64>(&Request::Close { queue: self.queue });
        }
    }
}

impl Queue for SteppedQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn spec(&self) -> QueueSpec {
        self.spec
    }

    fn pointers(&self) -> Pointers {
        let none = Pointers { read: 0, write: 0, scheduled: 0 };
        self.link.call(&Request::Pointers { queue: self.queue }).unwrap_or(none)
    }

    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd> {
        let own = region.registration::<OwnMemory>().map(|&OwnMemory { start, len }| (start, len, None));
        let registered = || {
            let Bytes { start, len } = region.registration::<Registered>()?.bytes;
            Some((start as u64, len, Some(region.key())))
        };
        let Some((start, len, region)) = own.or_else(registered) else {
            return Err(FabricError::Unsupported { feature: &"registering another provider's region" });
        };
        self.link.call(&Request::Register { queue: self.queue, start, len, region, fixed })
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.link.call(&Request::SetReadOnly { queue: self.queue, at, read_only })
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.link.call(&Request::Deregister { queue: self.queue, at })
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        match self.link.call(&Request::Post { queue: self.queue, postings: postings.to_vec() }) {
            Ok(Posted { posted, error: Some(error), .. }) => (posted, Err(Refused::Failed(error, ()))),
            Ok(Posted { posted, is_full: true, .. }) => (posted, Err(Refused::Full(()))),
            Ok(Posted { posted, .. }) => (posted, Ok(())),
            Err(error) => (0, Err(Refused::Failed(error, ()))),
        }
    }

    /// A refused post has taken virtual time, so the task may ask again at once.
    fn poll_post(
        &self,
        _: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        match self.try_post(core::slice::from_ref(posting)) {
            (_, Ok(())) => Poll::Ready(Ok(())),
            (_, Err(Refused::Failed(error, ()))) => Poll::Ready(Err(error)),
            (_, Err(Refused::Full(()))) => self.poll_again(deps, cx),
        }
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.link.call(&Request::PollTcq { queue: self.queue })
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.link.call(&Request::PollMrq { queue: self.queue })
    }

    /// A poll that finds nothing has taken virtual time, so the task may ask again at once.
    fn poll_wait(&self, _: &mut WaitState, _: QueueSide, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_again(deps, cx)
    }

    fn end_wait(&self, _: &mut WaitState, _: Option<QueueSide>, _: Ended) {}

    fn close(mut self: Box<Self>) -> Result<u64> {
        self.is_open = false;
        self.link.call(&Request::Close { queue: self.queue })
    }
}
