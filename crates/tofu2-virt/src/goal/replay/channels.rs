//! Preparing a replay: the channels through which messages find their receives.
//!
//! A channel is a source, a target and a tag. Each one with a receive gets a number before the replay,
//! which takes the place of the tag; so matching is an access to a table. Messages without such a
//! receive can only be received with wildcards.

use super::{Machine, lists::List};
use crate::{
    clock::RadixHeap,
    goal::{
        LogGps, ReplayError, Schedule,
        schedule::{ANY, Kind, Op},
    },
    huge_pages::in_huge_pages,
};
use std::collections::{BinaryHeap, HashMap, VecDeque};
use tofu2_job::available;

/// Of messages without a channel, and of receives with wildcards.
pub(super) const NO_CHANNEL: u32 = u32::MAX;

/// The receives with wildcards of a rank, and its messages.
#[derive(Debug, Default)]
pub(super) struct Wildcards {
    /// Posted receives with wildcards.
    pub(super) posted: VecDeque<u32>,
    /// Messages that arrived, some of which may have been taken through their channel.
    pub(super) arrived: VecDeque<u32>,
    /// The number of those.
    pub(super) taken: usize,
}

impl Wildcards {
    /// Removes messages that were taken through their channel, when they are half of all.
    pub(super) fn forget_taken(&mut self, is_taken: impl Fn(u32) -> bool) {
        if 2 * self.taken >= self.arrived.len() {
            self.arrived.retain(|message| !is_taken(*message));
            self.taken = 0;
        }
    }
}

impl Op {
    /// Stores when a message has been received by its CPU, which nothing but its receive needs.
    pub(super) fn set_arrived(&mut self, time: u64) {
        (self.size, self.stamp) = (time as u32, (time >> 32) as u32);
    }

    pub(super) fn arrived(&self) -> u64 {
        u64::from(self.stamp) << 32 | u64::from(self.size)
    }
}

impl Machine {
    pub(super) fn new(schedule: Schedule, loggps: LogGps) -> Result<Machine, ReplayError> {
        let ranks = schedule.ranks() as usize;
        let Schedule { starts, mut ops, edges, large, cpus, nics } = schedule;
        let (cpus, nics) = (usize::from(cpus), usize::from(nics));
        let (resources, classes) = (cpus + 2 * nics, cpus + 2 * cpus * nics);
        enough_memory(ranks, resources, classes, &ops)?;
        let mut wildcards = HashMap::new();
        for op in ops.iter().filter(|op| is_wildcard(op)) {
            wildcards.entry(op.rank).or_insert_with(Wildcards::default);
        }
        let tags = if wildcards.is_empty() { Vec::new() } else { ops.iter().map(|op| op.tag).collect() };
        let channels = number_channels(&mut ops, &starts);
        let mut machine = Machine {
            loggps,
            unfinished: ops.len(),
            free: vec![0; ranks * resources],
            waiting: vec![List::EMPTY; ranks * classes],
            channels: vec![List::EMPTY; channels],
            ops,
            edges,
            large,
            starts,
            cpus,
            nics,
            classes,
            wildcards,
            tags,
            queue: RadixHeap::default(),
            retries: BinaryHeap::new(),
            executable: Vec::new(),
            now: 0,
            stamps: 0,
            posted: 0,
            messages: 0,
        };
        in_huge_pages(&mut machine.free);
        in_huge_pages(&mut machine.channels);
        Ok(machine)
    }
}

fn is_wildcard(op: &Op) -> bool {
    op.kind == Kind::Recv && (op.peer == ANY || op.tag == ANY)
}

/// Replaces tags by channels. Returns the number of channels.
fn number_channels(ops: &mut [Op], starts: &[u32]) -> usize {
    // The channels of each rank, sorted by source and tag.
    let mut channels: Vec<(u32, u32)> = Vec::new();
    let mut firsts = Vec::with_capacity(starts.len());
    let mut receives: Vec<(u32, u32, u32)> = Vec::new();
    for (start, end) in starts.iter().zip(&starts[1..]) {
        firsts.push(channels.len());
        receives.clear();
        for index in *start..*end {
            let op = &mut ops[index as usize];
            if is_wildcard(op) {
                op.tag = NO_CHANNEL;
            } else if op.kind == Kind::Recv {
                receives.push((op.peer, op.tag, index));
            }
        }
        receives.sort_unstable();
        for (source, tag, index) in &receives {
            if channels.len() == firsts[firsts.len() - 1] || channels.last() != Some(&(*source, *tag)) {
                channels.push((*source, *tag));
            }
            ops[*index as usize].tag = channels.len() as u32 - 1;
        }
    }
    firsts.push(channels.len());
    for op in ops.iter_mut().filter(|op| op.kind == Kind::Send) {
        let (first, end) = (firsts[op.peer as usize], firsts[op.peer as usize + 1]);
        let found = channels[first..end].binary_search(&(op.rank, op.tag));
        op.tag = found.map_or(NO_CHANNEL, |at| (first + at) as u32);
    }
    channels.len()
}

/// Checks that there is enough memory for the tables, beside the schedule.
fn enough_memory(ranks: usize, resources: usize, classes: usize, ops: &[Op]) -> Result<(), ReplayError> {
    let per_rank = resources as u64 * size_of::<u64>() as u64 + classes as u64 * size_of::<List>() as u64;
    // A channel for each receive, while they are numbered and during the replay.
    let receives = ops.iter().filter(|op| op.kind == Kind::Recv).count() as u64;
    let needed =
        per_rank.saturating_mul(ranks as u64) + receives * (size_of::<(u32, u32)>() + size_of::<List>()) as u64;
    available::check(needed, available::private_memory()).map_err(|left| ReplayError::TooLittleMemory {
        needed,
        available: left.amount,
        limit: left.limit,
    })
}
