//! Progress: messages that wait in any grid go on in every call of every other grid.

use core::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};
use fmpl::Communicator;
use rdma_fabric::provider::Boxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The communicators of a rank's grids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grids(Arc<Mutex<Vec<Weak<Communicator>>>>);

impl Grids {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Communicator>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a communicator.
    pub(crate) fn add(&self, communicator: &Arc<Communicator>) {
        let mut all = self.all();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(communicator));
    }

    /// Removes a communicator, so that its only owner is who calls.
    pub(crate) fn remove(&self, communicator: &Arc<Communicator>) {
        self.all().retain(|other| other.as_ptr() != Arc::as_ptr(communicator));
    }

    /// Returns a future that, while it waits, goes on with the messages of all grids, but for one whose
    /// own calls do that.
    pub(crate) fn progressing<'a, T>(
        &'a self,
        but: Option<&Communicator>,
        future: impl Future<Output = T> + Send + 'a,
    ) -> Progressing<'a, T> {
        let but = but.map_or(0, |but| core::ptr::from_ref(but).addr());
        Progressing { grids: self, but, future: Box::pin(future) }
    }

    fn go_on(&self, but: usize, cx: &mut Context<'_>) {
        // No reference leaves this lock, see `remove`.
        for communicator in self.all().iter().filter(|other| other.as_ptr().addr() != but).filter_map(Weak::upgrade) {
            // What it counts or reports nobody else asks for; a loss the grid's own calls meet again.
            let Poll::Ready(_) = pin!(communicator.check_spool()).poll(cx) else { continue };
        }
    }
}

/// A call during which the messages of all grids go on.
pub(crate) struct Progressing<'a, T> {
    grids: &'a Grids,
    /// The address of the communicator whose calls do that by themselves; 0 for none.
    but: usize,
    future: Boxed<'a, T>,
}

impl<T> Future for Progressing<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let poll = self.future.as_mut().poll(cx);
        self.grids.go_on(self.but, cx);
        poll
    }
}
