//! The coordinator of a job: one thread to which all sessions are connected.
//!
//! [`event_loop`] is the event loop, [`connection`] the state of one connection, and [`job`] the
//! decision logic, which neither blocks nor reads a clock.

mod connection;
mod event_loop;
mod job;
mod listener;
mod outcome;
mod plan;

pub(crate) use job::Roster;
#[cfg(any(test, fuzzing))]
pub(crate) use job::fuzz::run as fuzz;
pub use outcome::{Abort, End, Outcome};
pub use plan::{Plan, StartError, Succession};

use crate::Secret;
use event_loop::EventLoop;
use job::Job;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

/// The coordinator of a job. It runs on a thread of its own.
///
/// Dropping it ends the job's sessions: a session that has not been notified that all ranks have
/// ended, or that the job was aborted, reports that its coordinator is lost. The drop takes at most
/// one second.
#[derive(Debug)]
pub struct Coordinator {
    address: SocketAddr,
    shared: Arc<Shared>,
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// A request of the coordinator's owner to its thread.
enum Command {
    Abort { code: i32, text: String },
    Gone { rank: u32, text: String },
    Stop,
}

/// State that the thread shares with its owner.
#[derive(Debug)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    wake: rustix::fd::OwnedFd,
}

#[derive(Debug)]
struct Seen {
    ends: Vec<Option<End>>,
    first_lost: Option<u32>,
    outcome: Option<Outcome>,
}

impl Seen {
    /// Stores how each rank has ended so far.
    fn set_ends(&mut self, ends: Vec<Option<End>>) {
        let lost = || ends.iter().position(|end| matches!(end, Some(End::Lost(_))));
        self.first_lost = self.first_lost.or_else(|| lost().map(|rank| rank as u32));
        self.ends = ends;
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Coordinator {
    /// Starts the coordinator of a job, listening at `listen`; with port 0 the system chooses the
    /// port.
    pub fn start(listen: SocketAddr, secret: Secret, plan: Plan) -> Result<Self, StartError> {
        plan.check()?;
        let failed = |call| move |cause: io::Error| StartError::System { call, listen, cause };
        let listener = TcpListener::bind(listen).map_err(failed("bind"))?;
        // All ranks may connect at once, which may exceed the standard library's own backlog.
        rustix::net::listen(&listener, 4096).map_err(|cause| failed("listen")(cause.into()))?;
        let number = u64::from_ne_bytes(crate::secret::random_bytes().map_err(failed("getrandom"))?);
        let job = Job::new(plan, number, Instant::now());
        Self::serve(listener, secret, job).map_err(|(call, cause)| failed(call)(cause))
    }

    /// Starts a standby: it becomes the coordinator of a running job if the larger part of the
    /// job's ranks votes for it.
    pub(crate) fn stand(
        listener: TcpListener,
        secret: Secret,
        plan: Plan,
        roster: &Roster,
    ) -> Result<Self, (&'static str, io::Error)> {
        Self::serve(listener, secret, Job::standby(plan, roster, Instant::now()))
    }

    fn serve(listener: TcpListener, secret: Secret, job: Job) -> Result<Self, (&'static str, io::Error)> {
        let address = listener.local_addr().map_err(|cause| ("getsockname", cause))?;
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake = rustix::event::eventfd(0, flags).map_err(|cause| ("eventfd", cause.into()))?;
        let seen = Mutex::new(Seen { ends: job.ends(), first_lost: None, outcome: None });
        let shared = Arc::new(Shared { seen, changed: Condvar::new(), wake });
        let (commands, inbox) = channel();
        let event_loop =
            EventLoop::open(listener, secret, job, Arc::clone(&shared), inbox).map_err(|cause| ("epoll", cause))?;
        let builder = Builder::new().name("coordinator".into()).stack_size(256 << 10);
        let thread = builder.spawn(move || event_loop.run()).map_err(|cause| ("thread", cause))?;
        Ok(Self { address, shared, commands, thread: Some(thread) })
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how each rank has ended so far, `None` for each rank that has not ended. The result
    /// includes every end that any session has been notified of.
    pub fn ends(&self) -> Vec<Option<End>> {
        self.shared.seen().ends.clone()
    }

    /// Returns the rank that was lost first, if any: later losses may be its consequence. If
    /// several ranks were lost at once, such as all ranks of a host, it is the lowest of them.
    pub fn first_lost(&self) -> Option<u32> {
        self.shared.seen().first_lost
    }

    /// Waits until all ranks have ended, the job could not start, or it was aborted; returns `None`
    /// if none of these happens within `within`. If the job could not start, a rank that arrives
    /// later changes from [`End::NeverCame`] to [`End::Refused`] when it receives the reason.
    pub fn wait(&self, within: Duration) -> Option<Outcome> {
        let until = Instant::now() + within;
        let mut seen = self.shared.seen();
        loop {
            if let Some(outcome) = &seen.outcome {
                return Some(outcome.clone());
            }
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Aborts the job, unless it has been aborted already. Every rank is notified.
    pub fn abort(&self, code: i32, text: &str) {
        self.command(Command::Abort { code, text: text.into() });
    }

    /// Reports that the process of a rank has ended, as its parent knows. If the rank had not
    /// joined yet, the job can't start. If it had joined, and had neither left nor reported that it
    /// is lost, it becomes lost for this reason.
    pub fn gone(&self, rank: u32, text: &str) {
        self.command(Command::Gone { rank, text: text.into() });
    }

    fn command(&self, command: Command) {
        // A thread that has ended needs no commands.
        let _ = self.commands.send(command);
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.command(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
