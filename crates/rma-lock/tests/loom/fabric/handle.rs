//! Handles: the operation is over when it is posted; its result may take another poll.

use super::LoomFabric;
use rdma_fabric::{FabricError, OpHandle, Result};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

pub(crate) struct LoomHandle<T> {
    /// Of whom the result is held back.
    late: Option<LoomFabric>,
    result: Option<Result<T>>,
}

impl<T> LoomHandle<T> {
    pub(crate) fn new(fabric: &LoomFabric, result: Result<T>) -> Self {
        LoomHandle { late: fabric.job().config.late_results.then(|| fabric.clone()), result: Some(result) }
    }
}

impl<T: Unpin> Future for LoomHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(fabric) = self.late.take() {
            fabric.job().poll_again(fabric.me());
            return Poll::Pending;
        }
        Poll::Ready(self.result.take().expect("a completed operation was polled again"))
    }
}

impl<T: Unpin + 'static> OpHandle<T> for LoomHandle<T> {
    fn test(&mut self) -> bool {
        self.late.is_none()
    }
    fn wait(self) -> Result<T> {
        self.result.unwrap_or(Err(FabricError::Unsupported { feature: "waiting twice" }))
    }
}
