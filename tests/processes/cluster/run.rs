//! Starting such jobs, and waiting for the end of their processes.

use process_tests::child::{Child, Ended, HANG, this_program};
use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Returns the command of a job of several processes.
pub(super) fn job(program: &str, options: &str) -> Command {
    job_on("cluster", program, options)
}

/// Returns the command of a job on this fabric.
pub(super) fn job_on(fabric: &str, program: &str, options: &str) -> Command {
    let mut command = this_program(["cluster-program", program, "--fabric", fabric]);
    command.args(options.split_whitespace()).stderr(Stdio::piped());
    command
}

/// Starts a job of `ranks` ranks that print their process ids and wait. Also returns these ids.
pub(super) fn start_waiting(command: Command, ranks: usize) -> (Child, Vec<u32>) {
    let mut launcher = Child::start(command);
    let ids = (0..ranks).map(|_| launcher.after("process ").parse().expect("a process id")).collect();
    (launcher, ids)
}

/// Runs a job with this standard input.
pub(super) fn run_with_input(command: Command, input: &str) -> Ended {
    let mut launcher = Child::start(command);
    launcher.write_and_close(input);
    launcher.end()
}

/// The variable that marks the processes of one test.
pub(super) const MARK: &str = "ONESIDED_TEST_MARK";

/// Waits until no process has this mark.
pub(super) fn expect_none_marked(mark: &str) {
    let variable = format!("{MARK}={mark}").into_bytes();
    let is_marked = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == variable)
    };
    let until = Instant::now() + HANG / 3;
    loop {
        let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
        let left: Vec<_> = all.filter(is_marked).map(|entry| entry.file_name()).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "processes {left:?} are left");
        thread::sleep(Duration::from_millis(20));
    }
}
