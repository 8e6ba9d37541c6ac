//! Runs in which ranks are lost.

use super::{Bed, Good, HOSTS, Outcome, job::Job};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::{
    error::Error,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub(super) const SLOTS: usize = 2;
pub(super) const RANKS: usize = HOSTS * SLOTS;
/// A time-out, not a measurement.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// The last rank is killed: the others are notified of the loss, and continue.
pub(super) fn killed(bed: &Bed) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", "1"])?;
    let processes = processes(&mut job)?;
    let at = now();
    kill_process(processes[RANKS - 1], Signal::KILL)?;
    let told_after = all_told(&mut job, RANKS - 1, at, bed)?;
    job.end(137, LONG)?;
    gone(&mut job, &processes)?;
    went_on(&job, RANKS - 1)?;
    Ok(Good { told_after: Some(told_after), note: format!("{} ranks went on, exit code 137", RANKS - 1) })
}

/// A host is disconnected, and reconnected before any rank is lost.
pub(super) fn cut_shortly(bed: &Bed) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", "1"])?;
    let processes = processes(&mut job)?;
    let pause = bed.lease / 4;
    job.cut(HOSTS - 1, true)?;
    thread::sleep(pause);
    job.cut(HOSTS - 1, false)?;
    thread::sleep(2 * bed.lease);
    if let [first, ..] = &job.told("was told")[..] {
        return Err(
            format!("after {pause:?} without network rank {} was told of a loss: {}", first.0, job.text()).into()
        );
    }
    // Check that a real loss is still reported.
    let at = now();
    kill_process(processes[RANKS - 1], Signal::KILL)?;
    all_told(&mut job, RANKS - 1, at, bed)?;
    job.end(137, LONG)?;
    gone(&mut job, &processes)?;
    Ok(Good { told_after: None, note: format!("{pause:?} without network: nobody is lost") })
}

/// A host is disconnected for good: the others are notified of the loss and continue; its own ranks
/// end by themselves. Then it is reconnected.
pub(super) fn cut(bed: &Bed) -> Outcome {
    let victims = SLOTS.to_string();
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", &victims])?;
    let processes = processes(&mut job)?;
    let (begun, at) = (Instant::now(), now());
    job.cut(HOSTS - 1, true)?;
    let ended = cut_off(&mut job, &processes, at, begun, bed);
    job.cut(HOSTS - 1, false)?;
    ended
}

fn cut_off(job: &mut Job<'_>, processes: &[Pid], at: Duration, begun: Instant, bed: &Bed) -> Outcome {
    let survivors = RANKS - SLOTS;
    let told_after = all_told(job, survivors, at, bed)?;
    gone(job, &processes[survivors..])?;
    let ended_after = begun.elapsed();
    job.end(1, LONG)?;
    gone(job, processes)?;
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

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Waits until all ranks have printed their process IDs, and returns these by rank.
pub(super) fn processes(job: &mut Job<'_>) -> Result<Vec<Pid>, Box<dyn Error>> {
    let mut told = job.wait(LONG, "a process of every rank", |job| {
        Some(job.told("is process ")).filter(|told| told.len() == RANKS)
    })?;
    told.sort_unstable();
    told.iter().map(|(_, number)| Pid::from_raw(number.parse()?).ok_or_else(|| "no process is 0".into())).collect()
}

/// Waits until all `survivors` have been notified of the loss; returns the time from `at` to the
/// last notification.
fn all_told(job: &mut Job<'_>, survivors: usize, at: Duration, bed: &Bed) -> Result<Duration, Box<dyn Error>> {
    let told = job.wait(10 * bed.lease + LONG, "a loss", |job| {
        Some(job.told("was told at ")).filter(|told| told.len() == survivors)
    })?;
    last_of(told, at)
}

/// Returns the time from `at` to the last of the reported times.
pub(super) fn last_of(told: Vec<(u32, String)>, at: Duration) -> Result<Duration, Box<dyn Error>> {
    let mut last = Duration::ZERO;
    for (_, time) in told {
        last = last.max(Duration::from_nanos(time.parse()?).saturating_sub(at));
    }
    Ok(last)
}

fn went_on(job: &Job<'_>, survivors: usize) -> Result<(), Box<dyn Error>> {
    match job.told("went on").len() {
        count if count == survivors => Ok(()),
        count => Err(format!("{count} of {survivors} survivors went on: {}", job.text()).into()),
    }
}

/// Waits until these processes have ended.
pub(super) fn gone(job: &mut Job<'_>, processes: &[Pid]) -> Result<(), Box<dyn Error>> {
    job.wait(LONG, "the end of all processes", |_| {
        processes.iter().all(|process| test_kill_process(*process).is_err()).then_some(())
    })
}
