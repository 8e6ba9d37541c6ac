//! Starting such jobs, and waiting for their end with a bound.

use rustix::process::{Pid, test_kill_process};
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The guard against jobs that hang.
const BOUND: Duration = Duration::from_secs(60);

/// The end of a job.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// Returns the command of a job of several processes.
pub(super) fn job(program: &str, options: &str) -> Command {
    job_on("cluster", program, options)
}

/// Returns the command of a job on this fabric.
pub(super) fn job_on(fabric: &str, program: &str, options: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("own path"));
    for setting in ["ONESIDED_JOB", "ONESIDED_SEGMENT_BYTES", "ONESIDED_STATS", "ONESIDED_HOSTS"] {
        command.env_remove(setting);
    }
    command.args(["cluster-program", program, "--fabric", fabric]).args(options.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a job with this standard input.
pub(super) fn run(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.spawn().expect("the launcher starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = thread::spawn(move || _ = stdin.write_all(&input));
    let ended = end(child);
    writer.join().expect("it is written");
    ended
}

/// Waits for the end of a job.
pub(super) fn end(mut child: Child) -> Ended {
    fn reader(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.map(|mut from| from.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let until = Instant::now() + BOUND;
    let status = loop {
        match child.try_wait().expect("it is ours") {
            Some(status) => break status,
            None if Instant::now() > until => {
                let _ = child.kill();
                panic!("a job hangs: {}", err.join().expect("it is read"));
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    Ended { code: status.code(), out: out.join().expect("it is read"), err: err.join().expect("it is read") }
}

/// Reads the numbers of the processes of `ranks` ranks that wait.
pub(super) fn processes(child: &mut Child, ranks: usize) -> Vec<Pid> {
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let numbers = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("process ")?.parse().ok());
    let numbers: Vec<Pid> = numbers.filter_map(Pid::from_raw).take(ranks).collect();
    assert_eq!(numbers.len(), ranks, "every rank tells its process");
    numbers
}

/// Waits until these processes have ended.
pub(super) fn wait_gone(processes: &[Pid]) {
    let until = Instant::now() + BOUND;
    while let Some(process) = processes.iter().find(|process| test_kill_process(**process).is_ok()) {
        assert!(Instant::now() < until, "process {process:?} is left");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The variable that marks processes of one test.
pub(super) const MARK: &str = "ONESIDED_TEST_MARK";

/// Waits until no process has this mark.
pub(super) fn wait_none_marked(mark: &str) {
    let variable = format!("{MARK}={mark}").into_bytes();
    let is_marked = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == variable)
    };
    let until = Instant::now() + BOUND / 3;
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
