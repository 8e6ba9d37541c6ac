//! Child processes that are jobs or ranks of jobs: all processes whose ids they print end with them.

use process_tests::child::{Child, Ended, expect_gone_within, this_program};
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The exit code of a process that is refused as a rank.
pub(crate) const REFUSED: u8 = 88;
/// The time that a process may take to end after its job.
const LEFT: Duration = Duration::from_secs(5);

/// Returns the number of files that this process has open.
pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// Returns the command that runs this program with `args`, outside of any job. Its standard error is a
/// pipe.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = this_program(args);
    command.stderr(Stdio::piped()).env("RUST_BACKTRACE", "0");
    command
}

/// Starts this program with `args` and `env`, outside of any job.
pub(crate) fn start(args: &[&str], env: &[(&str, &str)]) -> Child {
    let mut command = command(args);
    command.envs(env.iter().copied());
    Child::start(command)
}

/// Waits for the end of a child, and of the ranks that its remaining output names.
pub(crate) fn end(child: Child) -> Ended {
    let ended = child.end();
    expect_all_gone(ended.out.lines().filter_map(rank_of));
    ended
}

/// Returns the process id in the line by which a rank prints its own.
fn rank_of(line: &str) -> Option<u32> {
    line.strip_prefix("pid ")?.parse().ok()
}

/// Waits until none of these processes is left.
pub(crate) fn expect_all_gone(ids: impl IntoIterator<Item = u32>) {
    let until = Instant::now() + LEFT;
    ids.into_iter().for_each(|id| expect_gone_within(id, until.saturating_duration_since(Instant::now())));
}

/// Reads until `count` ranks have printed their process ids, and returns these.
pub(crate) fn wait_for_ranks(child: &mut Child, count: usize) -> Vec<u32> {
    let mut ranks = Vec::new();
    while ranks.len() < count {
        ranks.extend(rank_of(&child.line()));
    }
    ranks
}
