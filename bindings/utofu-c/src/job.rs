//! The job of this process, which the first call of the library attaches it to.

use crate::{
    failure::{Code, Outcome},
    machine::Machine,
    observing,
    settings::Settings,
    torus,
};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use observe::Recorder;
use rdma_fabric::{
    FabricError, Rank,
    control_queue::{Queue, QueueSpec},
};
use std::{
    io::{self, Write as _},
    sync::OnceLock,
};
use tofu2_shm::nic::Nic;

/// The job, and this process's rank in it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) machine: Machine,
    /// The records of this rank, if they are wanted.
    recorder: Option<Recorder>,
    pub(crate) settings: Settings,
    pub(crate) ranks: u32,
    /// Whether there are more ranks than CPUs.
    oversubscribed: bool,
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
    let mut machine = Machine::attach()?;
    let (mut recorder, mut oversubscribed) = (None, false);
    if let Machine::Shared { fabric, nic } = &mut machine {
        recorder = observing::start(fabric.rank()).map_err(|error| error.to_string())?;
        if let Some(recorder) = &recorder {
            *fabric = observe::observed(fabric, recorder.clone());
        }
        oversubscribed = nic.is_oversubscribed();
    }
    let ranks = u32::try_from(machine.ranks()).ok().filter(|&ranks| ranks <= torus::MOST_RANKS);
    let ranks = ranks.ok_or_else(|| format!("the torus has {} nodes at most", torus::MOST_RANKS))?;
    let (looked, lost) = (AtomicU64::new(u64::MAX), AtomicU32::new(0));
    Ok(Job { machine, recorder, settings, ranks, oversubscribed, looked, lost })
}

impl Job {
    /// Returns a rank that is lost, if any is.
    #[inline]
    pub(crate) fn lost(&self) -> Option<Rank> {
        let nic = match &self.machine {
            Machine::Shared { nic, .. } => nic,
            Machine::Virtual(rank) => return rank.lost(),
        };
        let changes = nic.changes();
        if self.looked.load(Acquire) != changes {
            self.look(nic, changes);
        }
        self.lost.load(Relaxed).checked_sub(1).map(Rank::new)
    }

    /// Opens a queue whose commands are recorded, if that is wanted.
    ///
    /// # Errors
    /// As [`Machine::open`].
    pub(crate) fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>, FabricError> {
        let queue = self.machine.open(spec, context)?;
        Ok(match &self.machine {
            Machine::Shared { fabric, .. } => observing::queue(fabric, self.recorder.as_ref(), queue),
            Machine::Virtual(_) => queue,
        })
    }

    #[cold]
    fn look(&self, nic: &Nic, changes: u64) {
        if let Some(rank) = nic.lost() {
            let _ = self.lost.compare_exchange(0, rank.number() + 1, Relaxed, Relaxed);
        }
        self.looked.store(changes, Release);
    }

    /// Gives the CPU to other ranks after some polls in a row that found nothing. In virtual time the
    /// poll has done so.
    #[inline]
    pub(crate) fn pause(&self, misses: u32) {
        if matches!(self.machine, Machine::Virtual(_)) {
            return;
        }
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
