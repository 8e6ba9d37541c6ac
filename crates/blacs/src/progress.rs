//! Progress: messages that wait in any grid go on in every call of every other grid.

use core::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    task::{Context, Poll},
};
use fmpl::Communicator;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The communicators of a rank's grids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grids {
    all: Arc<Mutex<Vec<Weak<Communicator>>>>,
    /// How many calls were over at once.
    calls: Arc<AtomicU32>,
}

/// Of so many calls that are over at once, one goes on with messages of other grids.
const SELDOM: u32 = 256;

impl Grids {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Communicator>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Awaits a call; while it waits, goes on with the messages of all grids, but for one whose own
    /// calls do that.
    pub(crate) fn progressing<'a, T>(
        &'a self,
        but: Option<&Communicator>,
        call: impl Future<Output = T> + Send + 'a,
    ) -> impl Future<Output = T> + Send {
        let but = but.map_or(0, |but| core::ptr::from_ref(but).addr());
        async move {
            let mut call = pin!(call);
            poll_fn(|cx| {
                let poll = call.as_mut().poll(cx);
                self.go_on(but, cx);
                poll
            })
            .await
        }
    }

    /// Returns whether a call that could be over at once is to go on with the messages of all grids: in
    /// a program whose calls are all of this kind nothing else does.
    #[inline]
    pub(crate) fn are_due(&self) -> bool {
        // Which calls these are does not matter, so neither does a count that is lost.
        let calls = self.calls.load(Relaxed);
        self.calls.store(calls.wrapping_add(1), Relaxed);
        calls.is_multiple_of(SELDOM)
    }

    fn go_on(&self, but: usize, cx: &mut Context<'_>) {
        // No reference leaves this lock, see `remove`.
        for communicator in self.all().iter().filter(|other| other.as_ptr().addr() != but).filter_map(Weak::upgrade) {
            // What it counts or reports nobody else asks for; a loss the grid's own calls meet again.
            let Poll::Ready(_) = pin!(communicator.check_spool()).poll(cx) else { continue };
        }
    }
}
