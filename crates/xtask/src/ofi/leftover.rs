//! Processes of a run, wherever its launcher has put them: they have a variable of their own in the
//! environment.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, process, thread,
    time::{Duration, Instant},
};

/// The variable's name. Its value is another one for each run.
pub(crate) const VARIABLE: &str = "ONESIDED_XTASK_RUN";

/// How long processes of a run that is over may take to end by themselves: the coordinator ends
/// after the ranks.
const GRACE: Duration = Duration::from_secs(5);

/// Returns another value for each run of each process.
pub(crate) fn mark(run: usize) -> String {
    format!("{}-{run}", process::id())
}

/// Returns the processes that were started with this mark.
fn with_mark(mark: &str) -> Vec<Pid> {
    let wanted = format!("{VARIABLE}={mark}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let marked = numbers.filter(|number| {
        // One that ends meanwhile, or is somebody else's, is none of ours.
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    });
    marked.filter_map(Pid::from_raw).collect()
}

/// Waits until no process of the run is left, and kills those that are still there after a while.
/// Returns how many that were.
pub(crate) fn end(mark: &str, at_once: bool) -> usize {
    let begun = Instant::now();
    while !at_once && begun.elapsed() < GRACE {
        if with_mark(mark).is_empty() {
            return 0;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let left = with_mark(mark);
    left.iter().for_each(|process| _ = kill_process(*process, Signal::KILL));
    left.len()
}
