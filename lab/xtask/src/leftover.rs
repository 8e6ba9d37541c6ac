//! Processes of a run, independent of their parents: they are marked by a variable in their
//! environment.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, mem, process, thread,
    time::{Duration, Instant},
};

/// The variable's name. Its value is different for each run.
pub(crate) const VARIABLE: &str = "ONESIDED_XTASK_RUN";

/// The time that processes of a completed run may take to end by themselves: the coordinator ends
/// after the ranks.
const GRACE: Duration = Duration::from_secs(5);

/// Returns a different value for each run of each process.
pub(crate) fn mark(run: usize) -> String {
    format!("{}-{run}", process::id())
}

/// A process of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// The rank that a launcher of this project assigned to the process.
    pub(crate) rank: Option<u32>,
}

/// Returns the rank that an environment variable assigns to its process: `ONESIDED_JOB=3 rank=2 …`,
/// `ONESIDED_CLUSTER=v1;rank=2;…`.
fn rank_in(variable: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(variable).ok()?;
    let text = text.strip_prefix("ONESIDED_JOB=").or(text.strip_prefix("ONESIDED_CLUSTER="))?;
    text.split([' ', ';']).find_map(|word| word.strip_prefix("rank=")?.parse().ok())
}

/// Returns the processes that were started with this mark, and have not ended.
pub(crate) fn with_mark(mark: &str) -> Vec<Process> {
    let wanted = format!("{VARIABLE}={mark}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let marked = numbers.filter_map(|number| {
        // A process that ends in the meantime, or belongs to another user, is not part of this run.
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.clone().find(|variable| *variable == wanted.as_bytes())?;
        Some(Process { pid: Pid::from_raw(number)?, rank: variables.find_map(rank_in) })
    });
    marked.collect()
}

/// Waits until no process of the run is left, and kills the remaining ones after a while. Returns
/// the number of processes killed.
pub(crate) fn end(mark: &str, at_once: bool) -> usize {
    end_within(mark, if at_once { Duration::ZERO } else { GRACE })
}

/// Like [`end`], with this grace period.
pub(crate) fn end_within(mark: &str, grace: Duration) -> usize {
    let (begun, mut none_is_left) = (Instant::now(), false);
    while begun.elapsed() < grace || none_is_left {
        // Two looks, because the environment of a process that replaces its program is empty for a moment.
        let before = mem::replace(&mut none_is_left, with_mark(mark).is_empty());
        if before && none_is_left {
            return 0;
        }
        thread::sleep(Duration::from_millis(10));
    }
    kill(mark)
}

/// Kills the processes of a run, including those that are started in the meantime; returns their
/// number.
pub(crate) fn kill(mark: &str) -> usize {
    let mut stopped = 0;
    loop {
        let left = with_mark(mark);
        // Processes that are stopped start no others.
        left.iter().for_each(|process| _ = kill_process(process.pid, Signal::STOP));
        if left.len() <= stopped {
            left.iter().for_each(|process| _ = kill_process(process.pid, Signal::KILL));
            return left.len();
        }
        stopped = left.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_in_the_launchers_variable() {
        assert_eq!(rank_in(b"ONESIDED_JOB=3 rank=2 ranks=3 memory=4"), Some(2));
        assert_eq!(rank_in(b"ONESIDED_CLUSTER=v1;rank=11;ranks=12"), Some(11));
        assert_eq!(rank_in(b"ONESIDED_NODE=rank=1"), None);
    }
}
