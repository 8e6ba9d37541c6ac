//! A job of processes: starting them.

use crate::part::LONG;
use bootstrap::{Coordinator, Plan, Secret, Succession};
use process_tests::child::{Child, HANG, this_program};
use std::{ffi::OsStr, net::SocketAddr, process::Stdio, time::Duration};

/// A lease that ends after each wait for a line, so that only the ends of connections are noticed in time.
pub(crate) const LONG_LEASE: Duration = HANG.saturating_mul(2);

/// Starts a process of a job, which first reads the secret.
pub(crate) fn start<W: AsRef<OsStr>>(secret: &Secret, words: impl IntoIterator<Item = W>) -> Child {
    let mut command = this_program(["role"]);
    command.args(words);
    let mut child = Child::start(command);
    child.write(&secret.to_hex());
    child
}

/// Starts a process with these variables and this standard input.
pub(crate) fn start_in(variables: &[(&str, String)], stdin: Stdio, words: &[&str]) -> Child {
    let mut command = this_program(["role"]);
    command.args(words).envs(variables.iter().cloned()).stdin(stdin);
    Child::start(command)
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
pub(crate) fn rank(start: &Start<'_>, rank: usize, address: SocketAddr, secret: &Secret) -> Child {
    let hold = start.hold.get(rank).copied().unwrap_or(0);
    let (rank, node) = (rank.to_string(), start.nodes[rank].to_owned());
    let ranks = start.nodes.len().to_string();
    self::start(secret, ["rank".into(), rank, ranks, node, address.to_string(), hold.to_string()])
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
pub(crate) fn run(start: &Start<'_>) -> (Coordinator, Vec<Child>) {
    let (coordinator, secret) = coordinator(start);
    let parts = ranks(start, coordinator.address(), &secret);
    (coordinator, parts)
}

/// Starts a coordinator's process and all ranks, and returns when all have joined.
pub(crate) fn run_apart(start: &Start<'_>) -> (Child, Vec<Child>) {
    let secret = Secret::random().expect("random numbers");
    let (ranks_text, lease) = (start.nodes.len().to_string(), start.lease.as_millis().to_string());
    let succession = (start.succession as u32).to_string();
    let mut coordinator = self::start(&secret, ["coordinator".into(), ranks_text, lease, succession]);
    let address = coordinator.line().parse().expect("an address");
    (coordinator, ranks(start, address, &secret))
}

fn ranks(start: &Start<'_>, address: SocketAddr, secret: &Secret) -> Vec<Child> {
    let mut parts: Vec<_> = (0..start.nodes.len()).map(|index| rank(start, index, address, secret)).collect();
    parts.iter_mut().for_each(|part| part.expect_line("joined"));
    parts
}
