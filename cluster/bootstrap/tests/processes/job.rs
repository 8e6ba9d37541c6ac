//! A job of processes: starting them, receiving their output, and ending them.

use crate::part::LONG;
use bootstrap::{Coordinator, Plan, Secret, Succession};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env::current_exe,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

/// A process of a job. It is killed when it is dropped.
pub(crate) struct Part {
    child: Child,
    lines: Receiver<(Instant, String)>,
}

impl Part {
    pub(crate) fn start(secret: &Secret, words: &[String]) -> Self {
        let mut command = Command::new(current_exe().expect("this program"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let part = Self::of(command);
        part.write(&secret.to_hex());
        part
    }

    /// Starts a process with these variables and this standard input.
    pub(crate) fn start_in(variables: &[(&str, String)], stdin: Stdio, words: &[&str]) -> Self {
        let mut command = Command::new(current_exe().expect("this program"));
        command.args(words).envs(variables.iter().cloned()).stdin(stdin).stdout(Stdio::piped());
        Self::of(command)
    }

    /// Writes to the standard input of the process, which is a pipe.
    pub(crate) fn write(&self, text: &str) {
        self.child.stdin.as_ref().expect("its input").write_all(text.as_bytes()).expect("its input");
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = send.send((Instant::now(), line));
            }
        });
        Self { child, lines }
    }

    /// Returns the next line of its output, and the time of its arrival.
    pub(crate) fn line_at(&self) -> (Instant, String) {
        self.lines.recv_timeout(LONG).expect("a line")
    }

    pub(crate) fn line(&self) -> String {
        self.line_at().1
    }

    /// Returns the next line that begins with `word`.
    pub(crate) fn line_of(&self, word: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(word) {
                return line;
            }
        }
    }

    pub(crate) fn is_quiet_for(&self, time: Duration) -> bool {
        self.lines.recv_timeout(time).is_err()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process's number");
        kill_process(pid, signal).expect("a signal");
    }

    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the children of the process.
    pub(crate) fn kill_children(&self) {
        let number = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children")).expect("its children");
        for child in children.split_whitespace() {
            let pid = child.parse().ok().and_then(Pid::from_raw).expect("a process's number");
            kill_process(pid, Signal::KILL).expect("a signal");
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The configuration of a job of processes.
pub(crate) struct Start<'a> {
    pub(crate) lease: Duration,
    /// The node of each rank.
    pub(crate) nodes: &'a [&'a str],
    /// For each rank, the epoch whose drain it does not answer; 0 for none.
    pub(crate) hold: &'a [u64],
    pub(crate) succession: Succession,
}

/// Starts a rank's process.
pub(crate) fn rank(start: &Start<'_>, rank: usize, address: SocketAddr, secret: &Secret) -> Part {
    let hold = start.hold.get(rank).copied().unwrap_or(0);
    let (rank, node) = (rank.to_string(), start.nodes[rank].to_owned());
    let ranks = start.nodes.len().to_string();
    Part::start(secret, &["rank".into(), rank, ranks, node, address.to_string(), hold.to_string()])
}

/// Starts a coordinator in this process.
pub(crate) fn coordinator(start: &Start<'_>) -> (Coordinator, Secret) {
    let secret = Secret::random().expect("random numbers");
    let plan = Plan {
        ranks: start.nodes.len(),
        join_within: LONG,
        lease: start.lease,
        segment: Vec::new(),
        succession: start.succession,
    };
    let listen = "127.0.0.1:0".parse().expect("an address");
    (Coordinator::start(listen, secret.clone(), plan).expect("a coordinator"), secret)
}

/// Starts a coordinator in this process and all ranks, and returns when all have joined.
pub(crate) fn run(start: &Start<'_>) -> (Coordinator, Vec<Part>) {
    let (coordinator, secret) = coordinator(start);
    let parts = ranks(start, coordinator.address(), &secret);
    (coordinator, parts)
}

/// Starts a coordinator's process and all ranks, and returns when all have joined.
pub(crate) fn run_apart(start: &Start<'_>) -> (Part, Vec<Part>) {
    let secret = Secret::random().expect("random numbers");
    let (ranks_text, lease) = (start.nodes.len().to_string(), start.lease.as_millis().to_string());
    let coordinator =
        Part::start(&secret, &["coordinator".into(), ranks_text, lease, (start.succession as u32).to_string()]);
    let address = coordinator.line().parse().expect("an address");
    (coordinator, ranks(start, address, &secret))
}

fn ranks(start: &Start<'_>, address: SocketAddr, secret: &Secret) -> Vec<Part> {
    let parts: Vec<_> = (0..start.nodes.len()).map(|index| rank(start, index, address, secret)).collect();
    for part in &parts {
        assert_eq!(part.line(), "joined");
    }
    parts
}
