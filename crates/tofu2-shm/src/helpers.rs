//! Helpers: threads that run alongside a rank's program, as the same rank.
//!
//! A helper is a thread that waits like its rank: it spins, yields, then parks on the rank's own
//! doorbell, so that writes of any thread of the rank, or of a peer, wake it immediately. When the
//! program has returned, the rank's thread asks all helpers to stop, wakes them and joins them;
//! each checks for that request between two polls of its future. A failed helper ends every wait of
//! the rank; the rank is lost when its program has returned.

use super::{block_on, endpoint::Endpoint, job::control::Control, memory::Mapping, waiting::report::HelperMark};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{
        AtomicBool,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    task::Poll,
};
use rdma_fabric::{FabricError, ProgramResult, Rank, Result, provider::HelperTask};
use std::{
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};
use tofu2_job::{HelperEnd, HelperFailed};

/// The error of a helper that waits for a notice.
pub(crate) const NO_NOTICES: FabricError = FabricError::Unsupported { feature: &"notices of a helper" };

/// The helpers of one rank.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    /// Whether one has failed.
    has_failed: AtomicBool,
    /// Whether they must stop.
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a function runs the rank that will end its helpers.
    is_run: bool,
    threads: Vec<JoinHandle<()>>,
    /// The outcome of the first helper that failed.
    end: Option<HelperEnd>,
}

impl Helpers {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between statements that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that no helper of the rank `me` has failed.
    ///
    /// # Errors
    /// [`FabricError::HelperFailed`].
    #[inline]
    pub(crate) fn can_continue(&self, me: Rank) -> Result<()> {
        if self.has_failed.load(Relaxed) { Err(FabricError::HelperFailed { rank: me }) } else { Ok(()) }
    }

    /// Allows helpers until [`Helpers::end`] is called.
    pub(crate) fn allow(&self) {
        self.state().is_run = true;
    }

    /// Ends the helpers, waking those that wait on the doorbell of the rank's `segment`, and joins
    /// them. Returns the outcome of the first helper that failed.
    pub(crate) fn end(&self, segment: &Mapping) -> Option<HelperEnd> {
        let mut state = self.state();
        state.is_run = false;
        self.stop.store(true, SeqCst);
        // A helper that parks after this fence sees the request in its last check (the doorbell's
        // W3); one that parked earlier is woken by the doorbell.
        fence(SeqCst);
        let threads = core::mem::take(&mut state.threads);
        drop(state);
        if !threads.is_empty() {
            segment.ring();
            threads.iter().for_each(|thread| thread.thread().unpark());
        }
        for thread in threads {
            // Panics are caught in the thread.
            let _ = thread.join();
        }
        self.state().end.take()
    }

    /// Records that a helper failed, and ends the waits of its rank.
    fn failed(&self, end: HelperEnd, control: &Control, segment: &Mapping) {
        self.state().end.get_or_insert(end);
        // Before the change is counted: a thread that sees the count sees this.
        self.has_failed.store(true, SeqCst);
        control.count_change();
        fence(SeqCst);
        segment.ring();
    }
}

/// Starts a helper of the rank of `endpoint`.
pub(crate) fn start(endpoint: &Endpoint, name: &'static str, task: HelperTask) -> Result<()> {
    let helpers = endpoint.helpers();
    let mut state = helpers.state();
    if !state.is_run {
        return Err(FabricError::Unsupported { feature: &"a helper of a rank that does not run, or has ended" });
    }
    state.threads.retain(|thread| !thread.is_finished());
    let own = endpoint.for_helper();
    let mark = HelperMark::new(endpoint.kept_segment());
    let builder = thread::Builder::new().name(format!("{name} of {}", endpoint.me()));
    let spawned = builder.spawn(move || {
        let fabric = own.clone().fabric();
        run(&own, name, move || task(fabric));
        drop(mark);
    });
    let error = |error: std::io::Error| FabricError::System {
        call: &"pthread_create",
        errno: error.raw_os_error().unwrap_or(0),
    };
    state.threads.push(spawned.map_err(error)?);
    Ok(())
}

/// Runs a helper until it returns, or until it must stop.
fn run<F: Future<Output = ProgramResult<()>>>(endpoint: &Endpoint, name: &'static str, task: impl FnOnce() -> F) {
    let helpers = endpoint.helpers();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        block_on(async {
            let mut future = pin!(task());
            poll_fn(|cx| match helpers.stop.load(SeqCst) {
                true => Poll::Ready(Ok(())),
                false => future.as_mut().poll(cx),
            })
            .await
        })
    }));
    let end = match ended {
        Ok(Ok(())) => return,
        // An error caused by the end of the program.
        Ok(Err(_)) if helpers.stop.load(SeqCst) => return,
        Ok(Err(error)) => HelperEnd::Failed(HelperFailed { name, error }),
        Err(panic) => HelperEnd::Panicked { name, message: super::threads::message(&*panic) },
    };
    helpers.failed(end, &endpoint.job().control, endpoint.segment());
}

/// Returns whether a program's error was caused by a failed helper of its rank.
pub(super) fn is_reported_by(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if matches!(error.downcast_ref(), Some(FabricError::HelperFailed { .. })) {
            return true;
        }
        cause = error.source();
    }
    false
}
