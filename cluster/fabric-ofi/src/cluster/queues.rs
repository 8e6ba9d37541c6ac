//! The control queues of a cluster: those of the rank's node, whose commands for queues of other
//! nodes are sent by [`super::commands`].

use super::{net::Net, provider::Cluster, region::SharedRegion};
use core::task::{Context, Poll};
use rdma_fabric::{
    Deps, FabricError, Refused, Region, Result,
    control_queue::{Command, Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd},
    provider::{Ended, Queue, QueueSide, Queues, WaitState},
};
use std::sync::Arc;

/// An open queue.
#[derive(Debug)]
struct ClusterQueue {
    net: Arc<Net>,
    below: Box<dyn Queue>,
}

impl Cluster {
    fn queues_below(&self) -> Result<&dyn Queues> {
        self.below.provider().queues().ok_or(FabricError::Unsupported { feature: &"control queues" })
    }
}

impl Queues for Cluster {
    fn limits(&self) -> QueueLimits {
        self.queues_below().map_or(QueueLimits::NONE, |queues| queues.limits())
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>> {
        let below = self.queues_below()?.open(spec)?;
        Ok(Box::new(ClusterQueue { net: self.net.clone(), below }))
    }
}

/// The error of a command that [`ClusterQueue::refuses`].
const BESIDE_THE_NETWORK: FabricError =
    FabricError::Unsupported { feature: &"a control queue's atomic beside atomics by the network" };

impl ClusterQueue {
    /// Returns whether a command can't be posted: the CPUs of this rank and of its peers would
    /// execute its atomic, while the network's atomics change the same words.
    fn refuses(&self, posting: &Posting) -> bool {
        self.net.watched.is_some() && matches!(posting.command, Command::Atomic { .. })
    }
}

impl Queue for ClusterQueue {
    fn id(&self) -> QueueId {
        self.below.id()
    }

    fn spec(&self) -> QueueSpec {
        self.below.spec()
    }

    fn pointers(&self) -> Pointers {
        self.net.look();
        self.below.pointers()
    }

    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd> {
        let foreign = FabricError::Unsupported { feature: &"a region of another provider" };
        let below = region.registration::<SharedRegion>().and_then(SharedRegion::below).ok_or(foreign)?;
        self.below.register(below, fixed)
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.below.set_read_only(at, read_only)
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.below.deregister(at)
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let Some(at) = postings.iter().position(|posting| self.refuses(posting)) else {
            return self.below.try_post(postings);
        };
        let (posted, ended) = self.below.try_post(&postings[..at]);
        (posted, ended.and(Err(Refused::Failed(BESIDE_THE_NETWORK, ()))))
    }

    fn poll_post(
        &self,
        wait_state: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if self.refuses(posting) {
            return Poll::Ready(Err(BESIDE_THE_NETWORK));
        }
        self.net.poll_while_waiting();
        self.below.poll_post(wait_state, posting, deps, cx)
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.net.find(|| self.below.poll_tcq())
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.net.find(|| self.below.poll_mrq())
    }

    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        self.net.poll_while_waiting();
        self.below.poll_wait(wait_state, side, deps, cx)
    }

    fn end_wait(&self, wait_state: &mut WaitState, side: Option<QueueSide>, ended: Ended) {
        self.net.progress.found();
        self.below.end_wait(wait_state, side, ended);
    }

    fn close(self: Box<Self>) -> Result<u64> {
        self.below.close()
    }
}
