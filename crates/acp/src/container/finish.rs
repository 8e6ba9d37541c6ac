//! Work that is carried through even if nobody awaits it any more.

use crate::Acp;
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, provider::Boxed};
use std::sync::Arc;

/// Tells work that nobody awaits it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unawaited(Arc<AtomicBool>);

impl Unawaited {
    /// Returns whether the future was dropped. One thread at a time sets and reads it.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Work between two consistent states of something that other ranks use. Awaiting it changes
/// nothing; dropping it [detaches](Fabric::detach) what is left of it.
#[must_use = "futures do nothing unless they are polled"]
pub(crate) struct Finish<Out: 'static> {
    fabric: Fabric,
    unawaited: Unawaited,
    begun: bool,
    /// `None` when it has ended.
    work: Option<Boxed<'static, Out>>,
}

/// Makes work that is carried through once it has begun. It may operate on global memory and flush,
/// and must wait for nothing that others do, nor for time.
pub(crate) fn finish<Out, Work>(acp: &Acp, work: impl FnOnce(Unawaited) -> Work) -> Finish<Out>
where
    Work: Future<Output = Out> + Send + 'static,
{
    let unawaited = Unawaited::default();
    let work: Boxed<'static, Out> = Box::pin(work(unawaited.clone()));
    Finish { fabric: acp.fabric().clone(), unawaited, begun: false, work: Some(work) }
}

impl<Out> Future for Finish<Out> {
    type Output = Out;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Out> {
        self.begun = true;
        let work = self.work.as_mut().expect("polled after the end");
        let Poll::Ready(out) = work.as_mut().poll(cx) else { return Poll::Pending };
        self.work = None;
        Poll::Ready(out)
    }
}

impl<Out: 'static> Drop for Finish<Out> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && self.begun
        {
            self.unawaited.0.store(true, Relaxed);
            self.fabric.detach(async move { drop(work.await) });
        }
    }
}
