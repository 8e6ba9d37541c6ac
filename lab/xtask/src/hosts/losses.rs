//! Runs in which ranks are lost.

use super::{
    bed::{Bed, Good, Outcome},
    job::Job,
};
use std::{
    error::Error,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Ranks of each host.
pub(crate) const SLOTS: usize = 2;
/// A time-out, not a measurement.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The last rank is killed: the others are notified of the loss, and continue.
pub(crate) fn killed(bed: &Bed) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", "1"])?;
    let processes = processes(&mut job, bed)?;
    let at = now();
    processes[ranks(bed) - 1].kill(bed)?;
    let told_after = all_told(&mut job, ranks(bed) - 1, at, bed)?;
    job.end(137, LONG)?;
    gone(&mut job, bed, &processes)?;
    went_on(&job, ranks(bed) - 1)?;
    Ok(Good { told_after: Some(told_after), note: format!("{} ranks went on, exit code 137", ranks(bed) - 1) })
}

/// A host is disconnected, and reconnected before any rank is lost.
pub(crate) fn cut_shortly(bed: &Bed) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", "1"])?;
    let processes = processes(&mut job, bed)?;
    let pause = bed.lease / 4;
    job.cut(bed.network.hosts() - 1, true)?;
    thread::sleep(pause);
    job.cut(bed.network.hosts() - 1, false)?;
    thread::sleep(2 * bed.lease);
    if let [first, ..] = &job.told("was told")[..] {
        return Err(
            format!("after {pause:?} without network rank {} was told of a loss: {}", first.0, job.text()).into()
        );
    }
    // Check that a real loss is still reported.
    let at = now();
    processes[ranks(bed) - 1].kill(bed)?;
    all_told(&mut job, ranks(bed) - 1, at, bed)?;
    job.end(137, LONG)?;
    gone(&mut job, bed, &processes)?;
    Ok(Good { told_after: None, note: format!("{pause:?} without network: no rank is lost") })
}

/// A host is disconnected for good: the others are notified of the loss and continue; its own ranks
/// end by themselves. Then it is reconnected.
pub(crate) fn cut(bed: &Bed) -> Outcome {
    let victims = SLOTS.to_string();
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", &victims])?;
    let processes = processes(&mut job, bed)?;
    let (begun, at) = (Instant::now(), now());
    job.cut(bed.network.hosts() - 1, true)?;
    let ended = cut_off(&mut job, &processes, at, begun, bed);
    job.cut(bed.network.hosts() - 1, false)?;
    ended
}

fn cut_off(job: &mut Job<'_>, processes: &[Process], at: Duration, begun: Instant, bed: &Bed) -> Outcome {
    let survivors = ranks(bed) - SLOTS;
    let told_after = all_told(job, survivors, at, bed)?;
    gone(job, bed, &processes[survivors..])?;
    let ended_after = begun.elapsed();
    job.end(1, LONG)?;
    gone(job, bed, processes)?;
    went_on(job, survivors)?;
    if told_after > 2 * bed.lease {
        return Err(format!("the loss was told after {told_after:?}, more than 2 leases").into());
    }
    let note = format!(
        "{survivors} ranks went on, exit code 1; those of the host ended by themselves within {:.1} s",
        ended_after.as_secs_f64()
    );
    Ok(Good { told_after: Some(told_after), note })
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the number of ranks of a job on all hosts.
pub(crate) fn ranks(bed: &Bed) -> usize {
    bed.network.hosts() * SLOTS
}

/// A rank's process on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    host: usize,
    number: i32,
}

impl Process {
    pub(crate) fn kill(self, bed: &Bed) -> Result<(), Box<dyn Error>> {
        bed.network.signal(self.host, self.number, "KILL")
    }
}

/// Waits until all ranks have printed their process IDs, and returns the processes by rank.
pub(crate) fn processes(job: &mut Job<'_>, bed: &Bed) -> Result<Vec<Process>, Box<dyn Error>> {
    let mut told = job.wait(LONG, "a process of every rank", |job| {
        Some(job.told("is process ")).filter(|told| told.len() == ranks(bed))
    })?;
    told.sort_unstable();
    told.iter().map(|(rank, number)| Ok(Process { host: *rank as usize / SLOTS, number: number.parse()? })).collect()
}

/// Waits until all `survivors` have been notified of the loss; returns the time from `at` to the
/// last notification.
pub(crate) fn all_told(
    job: &mut Job<'_>,
    survivors: usize,
    at: Duration,
    bed: &Bed,
) -> Result<Duration, Box<dyn Error>> {
    let told = job.wait(10 * bed.lease + LONG, "a loss", |job| {
        Some(job.told("was told at ")).filter(|told| told.len() == survivors)
    })?;
    last_of(told, at)
}

/// Returns the time from `at` to the last of the reported times.
pub(crate) fn last_of(told: Vec<(u32, String)>, at: Duration) -> Result<Duration, Box<dyn Error>> {
    let mut last = Duration::ZERO;
    for (_, time) in told {
        last = last.max(Duration::from_nanos(time.parse()?).saturating_sub(at));
    }
    Ok(last)
}

pub(crate) fn went_on(job: &Job<'_>, survivors: usize) -> Result<(), Box<dyn Error>> {
    match job.told("went on").len() {
        count if count == survivors => Ok(()),
        count => Err(format!("{count} of {survivors} survivors went on: {}", job.text()).into()),
    }
}

/// Waits until these processes have ended.
pub(crate) fn gone(job: &mut Job<'_>, bed: &Bed, processes: &[Process]) -> Result<(), Box<dyn Error>> {
    job.wait(LONG, "the end of all processes", |_| {
        processes.iter().all(|process| !bed.network.is_alive(process.host, process.number)).then_some(())
    })
}
