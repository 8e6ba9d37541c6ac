//! The queue of fabrics that have none.

use super::{Completion, ControlQueue, MrqNotice, Pointers, Posting, QueueId, QueueSpec, SessionFabric, Stadd};
use crate::{Deps, Fabric, Refused, Result};
use core::{convert::Infallible, fmt, marker::PhantomData};

/// A queue that can't be: [`SessionFabric::Queue`] of a fabric without control queues. No value of it exists.
pub struct NoQueue<F>(Infallible, PhantomData<fn() -> F>);

impl<F> fmt::Debug for NoQueue<F> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl<F: SessionFabric<Queue = Self>> ControlQueue for NoQueue<F> {
    type Fabric = F;

    fn id(&self) -> QueueId {
        match self.0 {}
    }

    fn spec(&self) -> QueueSpec {
        match self.0 {}
    }

    fn register(&self, _: &<F as Fabric>::Region) -> Result<Stadd> {
        match self.0 {}
    }

    fn register_fixed(&self, _: &<F as Fabric>::Region, _: u8) -> Result<Stadd> {
        match self.0 {}
    }

    fn set_read_only(&self, _: Stadd, _: bool) -> Result<()> {
        match self.0 {}
    }

    fn deregister(&self, _: Stadd) -> Result<()> {
        match self.0 {}
    }

    fn try_post(&self, _: Posting) -> Result<(), Refused<()>> {
        match self.0 {}
    }

    async fn post(&self, _: Posting, _: Deps<'_>) -> Result<()> {
        match self.0 {}
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        match self.0 {}
    }

    async fn next_completion(&self, _: Deps<'_>) -> Result<Completion> {
        match self.0 {}
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        match self.0 {}
    }

    async fn next_notice(&self, _: Deps<'_>) -> Result<MrqNotice> {
        match self.0 {}
    }

    fn pointers(&self) -> Pointers {
        match self.0 {}
    }

    fn close(self) -> Result<u64> {
        match self.0 {}
    }
}
