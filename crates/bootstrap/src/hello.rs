//! What a process says of itself, and what it is told of its job.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// What a process says of itself when it joins its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Its rank, from 0.
    pub rank: u32,
    /// How many ranks it believes its job has.
    pub ranks: usize,
    /// Which build of the program it runs: all have to have the same.
    pub build: String,
    /// Over which provider it communicates: all have to use the same.
    pub provider: String,
    /// Its host's name, for people.
    pub host: String,
    /// What is the same for processes of one host and differs between hosts, such as an identity of
    /// the machine and of its boot.
    pub node: String,
}

/// What every process is told when all ranks have come.
#[derive(Debug, Clone)]
pub struct Welcome {
    /// The number of each rank's node. Nodes are numbered from 0 in the order of their first ranks.
    pub nodes: Arc<[u32]>,
    /// The host's name of each node, as its first rank gave it.
    pub hosts: Vec<String>,
    /// How old the job was when this was sent.
    pub age: Duration,
    /// When this arrived here: with `age`, what aligns the clocks of ranks, up to the time that a
    /// message takes.
    pub arrived: Instant,
    /// A random number of the job, the same for all ranks.
    pub job: u64,
    /// For how long the coordinator and a rank may be silent before each holds the other for lost.
    pub lease: Duration,
    /// The bytes of the coordinator's [`Plan::segment`](crate::Plan::segment).
    pub segment: Vec<u8>,
}
