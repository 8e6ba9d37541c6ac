//! The assignment of a member's channels to its queues.

use super::program::Shape;
use crate::{EndOfData, Form, init::Agreed};
use std::collections::HashMap;

/// The requirements of a channel on its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Slots of the data that are sent along the channel, if there are any.
    pub(crate) data: Option<u64>,
    /// Whether data are received along the channel.
    pub(crate) ready: bool,
    /// For a channel with outgoing data, the relay to which the data belong; for a channel that
    /// only receives, the relay that its data feed.
    pub(crate) relay: Option<Relay>,
    /// Whether data received along the channel end with a notice.
    pub(crate) notice: bool,
}

/// Data that are forwarded together: they leave when all their inputs have arrived, and their
/// receivers are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Relay {
    /// The stage, from 1. The inputs of a relay are of lower stages; each queue serves one stage.
    pub(crate) stage: u8,
    /// The relay's number within its stage.
    pub(crate) number: u32,
}

impl Demand {
    /// Returns the demand of a channel that forwards nothing.
    pub(crate) const fn new(data: Option<u64>, ready: bool) -> Self {
        Demand { data, ready, relay: None, notice: ready }
    }

    /// Returns the demand of a channel whose ends have agreed.
    pub(crate) fn of(agreed: &Agreed) -> Self {
        let demand = Demand::new(agreed.data_slots(), agreed.inn.is_some());
        if agreed.end == EndOfData::Separate { demand.ending_separately() } else { demand }
    }

    /// Returns the demand with a slot for END behind the data, and without a notice.
    pub(super) fn ending_separately(self) -> Self {
        Demand { data: self.data.map(|slots| slots + 1), notice: false, ..self }
    }

    /// Returns whether data received along the channel are forwarded.
    pub(crate) fn feeds(&self) -> bool {
        self.data.is_none() && self.relay.is_some()
    }

    /// Returns whether the channel's data leave as soon as their receiver is ready.
    fn plain(&self) -> bool {
        self.data.is_some() && self.relay.is_none()
    }
}

/// The queues that serve a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The queue that the neighbour addresses with its READYs and its data.
    pub(crate) queue: usize,
    /// The queue that the channel's own READY leaves from.
    pub(crate) ready_queue: usize,
    /// Whether data that arrive release slots of `queue`.
    pub(crate) feeds: bool,
    /// Whether such data end with a notice.
    pub(crate) notice: bool,
}

/// The queues of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignments {
    /// The shape of each queue. A queue without dependencies is the first, and only sends READYs.
    pub(crate) queues: Vec<Shape>,
    /// The assignments, by channel.
    pub(crate) assigned: Vec<Assignment>,
}

/// Assigns the channels with outgoing data to the queues of `form` in turn; channels that only
/// receive use the first queue. Relays have separate queues: each stage has the number of queues
/// that `form` uses for this number of neighbours.
pub(crate) fn assign_queues(form: Form, channels: &[Demand]) -> Assignments {
    let sending = channels.iter().filter(|edges| edges.plain()).count();
    let many = (form.queues(sending as u32) as usize).max(usize::from(!channels.is_empty()));
    let (relays, all) = relays(form, channels, many);
    let mut next = (0..many).cycle();
    let mut turn = |edges: &Demand| {
        let plain = if edges.plain() { next.next().unwrap_or(0) } else { 0 };
        let queue = edges.relay.map_or(plain, |relay| relays[&relay]);
        Assignment { queue, ready_queue: plain, feeds: edges.feeds(), notice: edges.notice }
    };
    let assigned: Vec<Assignment> = channels.iter().map(&mut turn).collect();
    let mut queues = vec![Shape::NONE; all];
    for (edges, assigned) in channels.iter().zip(&assigned) {
        queues[assigned.ready_queue].readies += u64::from(edges.ready);
        let shape = &mut queues[assigned.queue];
        shape.awaited += u64::from(edges.data.is_some() || edges.feeds());
        shape.data += edges.data.unwrap_or(0);
        shape.notices += u64::from(edges.notice);
    }
    Assignments { queues, assigned }
}

/// Yields the queue of each relay, after the first `many`, and the resulting number of queues.
fn relays(form: Form, channels: &[Demand], many: usize) -> (HashMap<Relay, usize>, usize) {
    let (mut relays, mut all) = (HashMap::new(), many);
    for stage in all_relays(channels).chunk_by(|a, b| a.stage == b.stage) {
        let queues = form.queues(stage.len() as u32).max(1) as usize;
        relays.extend(stage.iter().enumerate().map(|(at, relay)| (*relay, all + at % queues)));
        all += queues;
    }
    (relays, all)
}

/// Returns the relays in order, each once.
fn all_relays(channels: &[Demand]) -> Vec<Relay> {
    let mut relays: Vec<Relay> = channels.iter().filter_map(|edges| edges.relay).collect();
    relays.sort_unstable();
    relays.dedup();
    relays
}

/// Returns the largest number of queues that one of the stages could use.
pub(crate) fn widest(channels: &[Demand]) -> u32 {
    let plain = channels.iter().filter(|edges| edges.plain()).count() as u32;
    let relays = all_relays(channels);
    relays.chunk_by(|a, b| a.stage == b.stage).map(|stage| stage.len() as u32).fold(plain, u32::max)
}
