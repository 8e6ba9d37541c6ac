//! Work that runs to completion even if its future is dropped.

use crate::{Acp, GlobalAddress};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, provider::Boxed};
use std::sync::Arc;

/// A flag that informs work that its future was dropped; `None` if that cannot happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unawaited(Option<Arc<AtomicBool>>);

impl Unawaited {
    /// Returns whether the future was dropped. One thread at a time sets and reads it.
    pub(crate) fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|set| set.load(Relaxed))
    }
}

/// Work between two consistent states of something that other ranks use. Dropping it
/// [detaches](Fabric::detach) the rest of the work; it is not cancelled.
#[must_use = "futures do nothing unless they are polled"]
pub(crate) struct Finish<Out: 'static> {
    fabric: Fabric,
    unawaited: Unawaited,
    begun: bool,
    /// `None` once it has ended.
    work: Option<Boxed<'static, Out>>,
}

/// Creates work that runs to completion once it has started. It may operate on global memory and
/// flush, but must not wait for actions of other ranks or for time to pass.
pub(crate) fn finish<Out, Work>(acp: &Acp, work: impl FnOnce(Unawaited) -> Work) -> Finish<Out>
where
    Work: Future<Output = Out> + Send + 'static,
{
    let unawaited = Unawaited(Some(Arc::default()));
    let work: Boxed<'static, Out> = Box::pin(work(unawaited.clone()));
    Finish { fabric: acp.fabric().clone(), unawaited, begun: false, work: Some(work) }
}

/// Does work on the memory of one rank, which runs to completion once it has started. If that
/// memory is mapped, the work completes at its first poll and needs no box.
pub(crate) async fn finish_at<Out, Work>(acp: &Acp, at: GlobalAddress, work: impl FnOnce(Unawaited) -> Work) -> Out
where
    Out: 'static,
    Work: Future<Output = Out> + Send + 'static,
{
    if acp.is_mapped(at) { work(Unawaited::default()).await } else { finish(acp, work).await }
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
            if let Some(set) = &self.unawaited.0 {
                set.store(true, Relaxed);
            }
            self.fabric.detach(async move { drop(work.await) });
        }
    }
}
