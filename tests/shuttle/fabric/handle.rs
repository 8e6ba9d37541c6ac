//! Handles of operations under way.

use super::{ShuttleFabric, block_on};
use rdma_fabric::{OpHandle, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// An operation, and what its result is put into.
pub(crate) struct Handle<T> {
    fabric: ShuttleFabric,
    /// `None` if it was over when it was posted.
    id: Option<u64>,
    value: Option<T>,
    fill: fn(&mut T, &[u8]),
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:?} of {:?})", self.id, self.fabric)
    }
}

impl<T> Handle<T> {
    pub(super) fn over(fabric: &ShuttleFabric, value: T) -> Self {
        Handle { fabric: fabric.clone(), id: None, value: Some(value), fill: |_, _| () }
    }

    pub(super) fn under_way(fabric: &ShuttleFabric, id: u64, value: T, fill: fn(&mut T, &[u8])) -> Self {
        Handle { fabric: fabric.clone(), id: Some(id), value: Some(value), fill }
    }
}

impl<T: Unpin> Future for Handle<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T>> {
        let Some(id) = self.id else {
            return Poll::Ready(Ok(self.value.take().expect("a handle was polled after its end")));
        };
        let result = self.fabric.job.lock().take_result(self.fabric.me, id);
        let Some(result) = result else { return Poll::Pending };
        self.id = None;
        let mut value = self.value.take().expect("a handle was polled after its end");
        Poll::Ready(result.map(|bytes| {
            (self.fill)(&mut value, &bytes);
            value
        }))
    }
}

impl<T: Unpin + 'static> OpHandle<T> for Handle<T> {
    fn test(&mut self) -> bool {
        self.id.is_none_or(|id| self.fabric.job.lock().is_done(self.fabric.me, id))
    }

    fn wait(self) -> Result<T> {
        let (job, me) = (self.fabric.job.clone(), self.fabric.me);
        block_on(&job, me, self)
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.fabric.job.lock().forget(self.fabric.me, id);
        }
    }
}
