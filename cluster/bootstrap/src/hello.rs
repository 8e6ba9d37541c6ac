//! A process's description of itself, and the description of the job that it receives.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A process's description of itself, sent when it joins its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Its rank, from 0.
    pub rank: u32,
    /// The number of ranks with which it was started.
    pub ranks: usize,
    /// The build of its program, which has to be the same for all ranks.
    pub build: String,
    /// The provider by which it communicates, which has to be the same for all ranks.
    pub provider: String,
    /// The name of its host, for error messages.
    pub host: String,
    /// A text that is equal for processes of one host and differs between hosts, such as an
    /// identity of the machine and of its boot.
    pub node: String,
}

/// The description of the job that every process receives once all ranks have joined.
#[derive(Debug, Clone)]
pub struct Welcome {
    /// The number of each rank's node. Nodes are numbered from 0 in the order of their first ranks.
    pub nodes: Arc<[u32]>,
    /// The host name of each node, as given by its first rank.
    pub hosts: Vec<String>,
    /// The age of the job when this was sent.
    pub age: Duration,
    /// When this arrived: together with `age` it aligns the clocks of the ranks, up to the transfer
    /// time of a message.
    pub arrived: Instant,
    /// A random number of the job, the same for all ranks.
    pub job: u64,
    /// The time that the coordinator or a rank may be silent before the other considers it lost.
    pub lease: Duration,
    /// The bytes of the coordinator's [`Plan::segment`](crate::Plan::segment).
    pub segment: Vec<u8>,
}
