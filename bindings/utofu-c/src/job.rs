//! The job of this process, which the first call of the library attaches it to.

use crate::{
    failure::{Code, Outcome},
    observing,
    settings::Settings,
    torus,
};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use observe::Recorder;
use onesided::Backend;
use rdma_fabric::{Fabric, Rank};
use std::{
    io::{self, Write as _},
    sync::OnceLock,
};
use tofu2_shm::{QueueMachine, nic::Nic};

/// The job, and this process's rank in it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) fabric: Fabric,
    /// The records of this rank, if they are wanted.
    pub(crate) recorder: Option<Recorder>,
    pub(crate) nic: Nic,
    pub(crate) settings: Settings,
    pub(crate) ranks: u32,
    /// Whether there are more ranks than CPUs.
    pub(crate) oversubscribed: bool,
    /// [`Nic::changes`] when losses were last looked for.
    looked: AtomicU64,
    /// 1 + the first rank found lost, or 0.
    lost: AtomicU32,
}

/// Returns the job; the first call attaches the process.
///
/// # Errors
/// [`Code::FATAL`] if that failed, with the reason, which is also on standard error once.
#[inline]
pub(crate) fn job() -> Outcome<&'static Job> {
    static JOB: OnceLock<Result<Job, String>> = OnceLock::new();
    match JOB.get_or_init(start) {
        Ok(job) => Ok(job),
        Err(reason) => Err(Code::FATAL.because(reason)),
    }
}

fn start() -> Result<Job, String> {
    let started = attach();
    if let Err(reason) = &started {
        report(&format!("utofu: error: {reason}\n"));
    }
    started
}

fn attach() -> Result<Job, String> {
    let settings = Settings::read()?;
    let fabric = Backend::Cluster.attach().map_err(|error| error.to_string())?;
    let nic = Nic::of(&fabric).ok_or("the ranks do not share memory")?;
    nic.become_node(QueueMachine::TOFUD).map_err(|error| error.to_string())?;
    let recorder = observing::start(&fabric).map_err(|error| error.to_string())?;
    let fabric = observing::fabric(&fabric, recorder.as_ref());
    let ranks = u32::try_from(fabric.ranks()).ok().filter(|&ranks| ranks <= torus::MOST_RANKS);
    let ranks = ranks.ok_or_else(|| format!("the torus has {} nodes at most", torus::MOST_RANKS))?;
    let oversubscribed = nic.is_oversubscribed();
    let (looked, lost) = (AtomicU64::new(u64::MAX), AtomicU32::new(0));
    Ok(Job { fabric, recorder, nic, settings, ranks, oversubscribed, looked, lost })
}

impl Job {
    /// Returns a rank that is lost, if any is.
    #[inline]
    pub(crate) fn lost(&self) -> Option<Rank> {
        let changes = self.nic.changes();
        if self.looked.load(Acquire) != changes {
            self.look(changes);
        }
        self.lost.load(Relaxed).checked_sub(1).map(Rank::new)
    }

    #[cold]
    fn look(&self, changes: u64) {
        if let Some(rank) = self.nic.lost() {
            let _ = self.lost.compare_exchange(0, rank.number() + 1, Relaxed, Relaxed);
        }
        self.looked.store(changes, Release);
    }

    /// Gives the CPU to other ranks after some polls in a row that found nothing.
    #[inline]
    pub(crate) fn pause(&self, misses: u32) {
        let spins = if self.oversubscribed { 32 } else { 4096 };
        if misses >= spins {
            std::thread::yield_now();
        } else {
            core::hint::spin_loop();
        }
    }
}

/// Writes a message in one call, so that messages of several processes do not interleave. A failure
/// is ignored, because there is nowhere to report it.
pub(crate) fn report(message: &str) {
    let _ = io::stderr().lock().write_all(message.as_bytes());
}
