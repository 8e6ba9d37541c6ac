//! Handles: the operation is over when it is posted, or when the network interface has done it; its result may take another poll.

use crate::LoomFabric;
use rdma_fabric::{FabricError, OpHandle, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// What a rank has posted.
pub struct LoomHandle<T> {
    fabric: LoomFabric,
    /// Whether the result is held back.
    late: bool,
    /// As many puts the network interface must have delivered.
    delivered: Option<u64>,
    /// An atomic behind which so many puts of data are seen.
    covers: Option<u64>,
    result: Option<Result<T>>,
}

impl<T> fmt::Debug for LoomHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoomHandle(late: {}, after {:?} puts)", self.late, self.delivered)
    }
}

impl<T> LoomHandle<T> {
    pub(crate) fn new(fabric: &LoomFabric, delivered: Option<u64>, result: Result<T>) -> Self {
        LoomHandle {
            fabric: fabric.clone(),
            late: fabric.job().config.late_results,
            delivered,
            covers: None,
            result: Some(result),
        }
    }

    pub(crate) fn covering(self, covers: Option<u64>) -> Self {
        LoomHandle { covers, ..self }
    }

    fn complete(&mut self) {
        if let Some(puts) = self.covers.take() {
            self.fabric.job().atomic_complete(self.fabric.me(), puts);
        }
    }
}

impl<T: Unpin> Future for LoomHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if std::mem::take(&mut self.late) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(puts) = self.delivered {
            if self.fabric.job().poll_delivered(self.fabric.me(), puts).is_pending() {
                return Poll::Pending;
            }
            self.delivered = None;
        }
        self.complete();
        Poll::Ready(self.result.take().expect("a completed operation was polled again"))
    }
}

impl<T: Unpin + 'static> OpHandle<T> for LoomHandle<T> {
    fn test(&mut self) -> bool {
        let delivered = |puts| self.fabric.job().has_delivered(self.fabric.me(), puts);
        if self.delivered.is_some_and(delivered) {
            self.delivered = None;
        }
        !self.late && self.delivered.is_none()
    }
    fn wait(mut self) -> Result<T> {
        self.complete();
        match (self.delivered, self.result) {
            (None, Some(result)) => result,
            _ => Err(FabricError::Unsupported { feature: "waiting here" }),
        }
    }
}
