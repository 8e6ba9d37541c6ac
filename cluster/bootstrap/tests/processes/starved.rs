//! A coordinator that has no descriptor for a connection.

use crate::{job::start, part::LONG};
use bootstrap::Secret;
use std::{
    io::Read,
    net::{SocketAddr, TcpStream},
};

/// It uses no CPU time while the connection is pending, and accepts it as soon as it can.
pub(crate) fn a_coordinator_without_descriptors_pauses() {
    let secret = Secret::random().expect("a secret");
    let mut coordinator = start(&secret, ["coordinator", "2", "1000", "0", "starved"]);
    let address: SocketAddr = coordinator.line().parse().expect("an address");
    coordinator.expect_line("starved");
    let mut stranger = TcpStream::connect(address).expect("a backlog");
    coordinator.write("\n");
    let used: u64 = coordinator.after("used ").parse().expect("a number");
    assert!(used < 100, "{used} ms of CPU time in 500 ms");
    // The coordinator drops connections that do not authenticate themselves.
    stranger.set_read_timeout(Some(LONG)).expect("a time limit");
    stranger.read_to_end(&mut Vec::new()).expect("accepted, and closed");
}
