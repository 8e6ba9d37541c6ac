//! Runs this test as a child with arguments and environment, and checks its end and output;
//! implements as much of the usual test harness as users of `cargo test` expect.

use rustix::process::{Pid, test_kill_process};
use std::{
    io::Read,
    process::{Child, Command, ExitCode, Output, Stdio},
    time::{Duration, Instant},
};
use tofu2_sim::shm::{JOB_VARIABLE, SEGMENT_VARIABLE};

/// Ten times the duration of the slowest case.
const HANG: Duration = Duration::from_secs(60);

/// The exit code of a process that is refused as a rank.
pub(crate) const REFUSED: u8 = 88;

/// A test's name and function.
pub(crate) type Case = (&'static str, fn());

/// Runs the cases of all modules whose names contain one of the filters in `args`. With `--list`,
/// lists them instead.
pub(crate) fn run(modules: &[(&str, &[Case])], args: &[&str]) -> ExitCode {
    let filters: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let mut failed = 0;
    for (module, (name, case)) in
        modules.iter().flat_map(|(module, cases)| cases.iter().map(move |case| (module, case)))
    {
        let name = format!("{module}::{name}");
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(**filter)) {
            continue;
        }
        if args.contains(&"--list") {
            println!("{name}: test");
            continue;
        }
        let start = Instant::now();
        let result = std::panic::catch_unwind(case);
        println!("test {name} ... {} ({:.2?})", if result.is_ok() { "ok" } else { "FAILED" }, start.elapsed());
        failed += u32::from(result.is_err());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

/// Returns the number of files that this process has open.
pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// Starts this program with `args` and `env`, outside of any job.
pub(crate) fn start(args: &[&str], env: &[(&str, &str)]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("RUST_BACKTRACE", "0");
    command.env_remove(JOB_VARIABLE).env_remove(SEGMENT_VARIABLE).envs(env.iter().copied());
    command.spawn().expect("to run myself")
}

/// The results of an ended child.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

pub(crate) fn end(mut child: Child) -> Ended {
    let started = Instant::now();
    drop(child.stdin.take());
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > HANG {
            child.kill().expect("to end it");
            let output = child.wait_with_output().expect("a child");
            panic!("hangs: {output:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = started.elapsed();
    let Output { status, stdout, stderr } = child.wait_with_output().expect("a child");
    let ended = Ended {
        code: status.code(),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
        took,
    };
    nobody_left(&ended.out);
    ended
}

fn pids(out: &str) -> Vec<Pid> {
    let numbers = out.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

pub(crate) fn nobody_left(out: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    for pid in pids(out) {
        while test_kill_process(pid).is_ok() {
            assert!(Instant::now() < deadline, "{pid:?} is left over");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Reads until all ranks have printed their process ids.
pub(crate) fn wait_for_ranks(child: &mut Child, ranks: usize) -> String {
    let out = child.stdout.as_mut().expect("a pipe");
    let (mut text, mut byte) = (String::new(), [0]);
    while pids(&text).len() < ranks || !text.ends_with('\n') {
        assert_eq!(out.read(&mut byte).expect("a pipe"), 1, "ended early: {text}");
        text.push(byte[0].into());
    }
    text
}
