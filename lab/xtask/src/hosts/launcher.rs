//! Runs in which the launcher, and with it the coordinator of the job, is disconnected or killed.

use super::{
    bed::{Bed, Good, Outcome},
    job::{Job, told_in},
    losses::{LONG, Process, SLOTS, gone, last_of, now, processes, ranks},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// The launcher's host is disconnected for good: the ranks of the others elect a coordinator among
/// themselves, are notified of the loss, and continue, although their output has no reader. Those
/// of the host end by themselves.
pub(crate) fn cut(bed: &Bed) -> Outcome {
    let log = bed.network.make_directory("log")?;
    let (victims, path) = (SLOTS.to_string(), log.display().to_string());
    let mut job =
        Job::start(bed, SLOTS, "loss_delay", &["--victims", &victims, "--first", "--log", &path, "--talk", "16"])?;
    let processes = processes(&mut job, bed)?;
    let (begun, at) = (Instant::now(), now());
    job.cut(0, true)?;
    let ended = cut_off(&mut job, &log, &processes, at, begun, bed);
    job.cut(0, false)?;
    ended
}

fn cut_off(job: &mut Job<'_>, log: &Path, processes: &[Process], at: Duration, begun: Instant, bed: &Bed) -> Outcome {
    let survivors = ranks(bed) - SLOTS;
    gone(job, bed, &processes[..SLOTS])?;
    let ended_after = begun.elapsed();
    job.end(1, LONG)?;
    gone(job, bed, processes)?;
    let lines = bed.network.read(log)?;
    let told = told_in(lines.lines(), "was told at ");
    let went_on = told_in(lines.lines(), "went on").len();
    if told.len() != survivors || went_on != survivors {
        return Err(format!("{went_on} of {survivors} went on: {lines}").into());
    }
    let told_after = last_of(told, at)?;
    if told_after > 3 * bed.lease {
        return Err(format!("the loss was told after {told_after:?}, more than 3 leases").into());
    }
    // The agents do not belong to a rank, and must not remain either.
    job.wait(LONG, "the end of the agents", |_| (!bed.network.runs(&bed.programs.join("loss_delay"))).then_some(()))?;
    let note = format!(
        "{survivors} ranks went on; those of the launcher's host ended by themselves within {:.1} s",
        ended_after.as_secs_f64()
    );
    Ok(Good { told_after: Some(told_after), note })
}

/// The launcher is killed: no process is left.
pub(crate) fn killed(bed: &Bed) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &[])?;
    let processes = processes(&mut job, bed)?;
    let begun = Instant::now();
    job.kill()?;
    gone(&mut job, bed, &processes)?;
    let ended_after = begun.elapsed();
    job.wait(LONG, "the end of the agents", |_| (!bed.network.runs(&bed.programs.join("loss_delay"))).then_some(()))?;
    Ok(Good { told_after: None, note: format!("all ranks ended within {:.1} s", ended_after.as_secs_f64()) })
}
