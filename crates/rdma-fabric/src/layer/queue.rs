//! Control queues under a layer.

use super::{Layer, Layered};
use crate::{
    ControlQueue, Deps, Refused, Result, SessionFabric,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd},
};
use core::{fmt, future::Future};

/// A control queue of the fabric below, whose commands and waits go through the layer.
pub struct LayeredQueue<F: SessionFabric, L: Layer<F>> {
    queue: F::Queue,
    fabric: Layered<F, L>,
}

impl<F: SessionFabric, L: Layer<F>> fmt::Debug for LayeredQueue<F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} under {:?}", self.queue, self.fabric.layer())
    }
}

impl<F: SessionFabric, L: Layer<F>> SessionFabric for Layered<F, L> {
    type Queue = LayeredQueue<F, L>;

    fn queue_limits(&self) -> QueueLimits {
        self.layer().queue_limits(self.below())
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<LayeredQueue<F, L>> {
        Ok(LayeredQueue { queue: self.layer().open_queue(self.below(), spec)?, fabric: self.clone() })
    }
}

impl<F: SessionFabric, L: Layer<F>> ControlQueue for LayeredQueue<F, L> {
    type Fabric = Layered<F, L>;

    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn spec(&self) -> QueueSpec {
        self.queue.spec()
    }

    fn register(&self, region: &F::Region) -> Result<Stadd> {
        self.queue.register(region)
    }

    fn register_fixed(&self, region: &F::Region, tag: u8) -> Result<Stadd> {
        self.queue.register_fixed(region, tag)
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.queue.set_read_only(at, read_only)
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.queue.deregister(at)
    }

    #[inline]
    fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        self.fabric.layer().try_command(self.fabric.below(), &self.queue, posting)
    }

    #[inline]
    fn post(&self, posting: Posting, deps: Deps<'_>) -> impl Future<Output = Result<()>> {
        self.fabric.layer().command(self.fabric.below(), &self.queue, posting, deps)
    }

    #[inline]
    fn post_all(&self, postings: &[Posting], deps: Deps<'_>) -> impl Future<Output = Result<()>> {
        self.fabric.layer().commands(self.fabric.below(), &self.queue, postings, deps)
    }

    #[inline]
    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.fabric.layer().poll_tcq(self.fabric.below(), &self.queue)
    }

    #[inline]
    fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        self.fabric.layer().next_completion(self.fabric.below(), &self.queue, deps)
    }

    #[inline]
    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.fabric.layer().poll_mrq(self.fabric.below(), &self.queue)
    }

    #[inline]
    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        self.fabric.layer().next_mrq_notice(self.fabric.below(), &self.queue, deps)
    }

    fn pointers(&self) -> Pointers {
        self.queue.pointers()
    }

    fn close(self) -> Result<u64> {
        self.queue.close()
    }
}
