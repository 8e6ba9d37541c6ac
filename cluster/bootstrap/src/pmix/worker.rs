//! A thread that makes the calls, so that a call that does not return does not block its caller.

use super::{
    error::PmixError,
    raw::{Failed, Library, Session},
};
use core::time::Duration;
use std::{
    sync::{
        Mutex, TryLockError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
};

/// Held by the thread that has this process's session. The lock orders the end of one session
/// before the beginning of the next.
static SESSION: Mutex<()> = Mutex::new(());

/// The time that dropping waits for `PMIx_Finalize`, which gives up after 2 s by itself.
const FAREWELL: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce(&Session) + Send>;

/// The thread with the session.
#[derive(Debug)]
pub(super) struct Worker {
    library: &'static Library,
    /// The thread ends when this is dropped.
    jobs: Option<Sender<Job>>,
    /// Closed when the session has ended.
    over: Receiver<()>,
    /// The call that did not return, if any.
    lost: Option<&'static str>,
}

impl Worker {
    /// Starts the thread and the session, and returns the result of `greet`.
    pub(super) fn start<T: Send + 'static>(
        library: &'static Library,
        within: Duration,
        greet: impl FnOnce(&Session) -> T + Send + 'static,
    ) -> Result<(Self, T), PmixError> {
        let (jobs, asked) = mpsc::channel::<Job>();
        let (done, over) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let work = move || {
            // Dropped last, after the session.
            let _done = done;
            let _turn = match SESSION.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    let _ = tell.send(Err(PmixError::InUse));
                    return;
                }
            };
            let session = match Session::init(library) {
                Ok(session) => session,
                Err(failed) => {
                    let _ = tell.send(Err(call_failed(library, failed)));
                    return;
                }
            };
            // The receiver is gone if this took too long; then the channel of jobs is closed too.
            let _ = tell.send(Ok(greet(&session)));
            for job in asked {
                job(&session);
            }
        };
        thread::Builder::new().name("pmix".into()).spawn(work).map_err(PmixError::Thread)?;
        let mut worker = Self { library, jobs: Some(jobs), over, lost: None };
        let greeting = worker.wait("PMIx_Init", within, &told)??;
        Ok((worker, greeting))
    }

    /// Makes a call, and waits until it returns.
    pub(super) fn call<T: Send + 'static>(
        &mut self,
        call: &'static str,
        within: Duration,
        job: impl FnOnce(&Session) -> Result<T, Failed> + Send + 'static,
    ) -> Result<Result<T, Failed>, PmixError> {
        if let Some(call) = self.lost {
            return Err(PmixError::Lost { call });
        }
        let (tell, told) = mpsc::channel();
        let job: Job = Box::new(move |session| {
            // The receiver is gone if the call took too long.
            let _ = tell.send(job(session));
        });
        if let Some(jobs) = &self.jobs
            && jobs.send(job).is_err()
        {
            self.lost = Some(call);
            return Err(PmixError::Lost { call });
        }
        self.wait(call, within, &told)
    }

    /// Creates the error of a failed call.
    pub(super) fn failed(&self, failed: Failed) -> PmixError {
        call_failed(self.library, failed)
    }

    fn wait<T>(&mut self, call: &'static str, within: Duration, told: &Receiver<T>) -> Result<T, PmixError> {
        told.recv_timeout(within).map_err(|error| {
            self.lost = Some(call);
            match error {
                RecvTimeoutError::Timeout => PmixError::TimedOut { call, within },
                RecvTimeoutError::Disconnected => PmixError::Lost { call },
            }
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if self.lost.is_none() {
            // No message is ever sent: this returns when the thread drops its end of the channel.
            let _ = self.over.recv_timeout(FAREWELL);
        }
    }
}

fn call_failed(library: &Library, Failed { call, status }: Failed) -> PmixError {
    PmixError::Call { call, status, text: library.text_of(status) }
}
