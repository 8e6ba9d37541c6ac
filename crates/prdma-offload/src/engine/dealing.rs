//! Which queue serves which channel.

use super::program::Shape;
use crate::{Form, init::Agreed};
use std::collections::BTreeMap;

/// What a channel asks of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges {
    /// Slots of the data that are sent along it, if any are.
    pub(crate) data: Option<u64>,
    /// Whether it is received along.
    pub(crate) ready: bool,
    /// If it is sent along: the relay that its data belong to. If it is only received along: the one that they feed.
    pub(crate) relay: Option<Relay>,
    /// Whether what is received along it ends with a notice.
    pub(crate) notice: bool,
}

/// Data that are forwarded together: they leave when all that feeds them has come, and their receivers are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Relay {
    /// From 1. What feeds a relay is of lower stages; queues serve one stage each.
    pub(crate) stage: u8,
    /// Which one of its stage.
    pub(crate) number: u32,
}

impl Edges {
    /// Of a channel that forwards nothing.
    pub(crate) const fn new(data: Option<u64>, ready: bool) -> Self {
        Edges { data, ready, relay: None, notice: ready }
    }

    pub(crate) fn of(agreed: &Agreed) -> Self {
        Edges::new(agreed.data_slots(), agreed.inn.is_some())
    }

    /// Whether what is received along it is forwarded.
    pub(crate) fn feeds(&self) -> bool {
        self.data.is_none() && self.relay.is_some()
    }

    /// Whether its data leave as soon as their receiver is ready.
    fn plain(&self) -> bool {
        self.data.is_some() && self.relay.is_none()
    }
}

/// Which queues serve a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The one that the neighbour addresses: its READYs, and its data.
    pub(crate) by: usize,
    /// The one that says READY.
    pub(crate) says: usize,
    /// Whether data that arrive release slots of `by`.
    pub(crate) feeds: bool,
    /// Whether they end with a notice.
    pub(crate) notice: bool,
}

/// The queues of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dealt {
    /// What each has to do. One that awaits nothing is the first, and only sends READYs.
    pub(crate) queues: Vec<Shape>,
    /// By channel.
    pub(crate) served: Vec<Served>,
}

/// Deal the channels that are sent along out among as many queues as `form` has for them, in turn; those that are only received along go to the first.
/// Relays have queues of their own, as many for those of a stage as `form` has for so many neighbours.
pub(crate) fn deal(form: Form, channels: &[Edges]) -> Dealt {
    let sending = channels.iter().filter(|edges| edges.plain()).count();
    let many = (form.queues(sending as u32) as usize).max(usize::from(!channels.is_empty()));
    let (relays, all) = relays(form, channels, many);
    let mut next = (0..many).cycle();
    let mut turn = |edges: &Edges| {
        let plain = if edges.plain() { next.next().unwrap_or(0) } else { 0 };
        let by = edges.relay.map_or(plain, |relay| relays[&relay]);
        Served { by, says: plain, feeds: edges.feeds(), notice: edges.notice }
    };
    let served: Vec<Served> = channels.iter().map(&mut turn).collect();
    let mut queues = vec![Shape::NONE; all];
    for (edges, served) in channels.iter().zip(&served) {
        queues[served.says].readies += u64::from(edges.ready);
        let shape = &mut queues[served.by];
        shape.awaited += u64::from(edges.data.is_some() || edges.feeds());
        shape.data += edges.data.unwrap_or(0);
        shape.notices += u64::from(edges.notice);
    }
    Dealt { queues, served }
}

/// The queue of each relay, after the first `many`; and how many queues there are then.
fn relays(form: Form, channels: &[Edges], many: usize) -> (BTreeMap<Relay, usize>, usize) {
    let mut relays: BTreeMap<Relay, usize> = channels.iter().filter_map(|edges| Some((edges.relay?, 0))).collect();
    let stages = channels.iter().filter_map(|edges| edges.relay).map(|relay| relay.stage).max().unwrap_or(0);
    let mut all = many;
    for stage in 1..=stages {
        let mut mine: Vec<_> = relays.iter_mut().filter(|(relay, _)| relay.stage == stage).collect();
        let queues = form.queues(mine.len() as u32).max(u32::from(!mine.is_empty())) as usize;
        for (at, (_, queue)) in mine.iter_mut().enumerate() {
            **queue = all + at % queues;
        }
        all += queues;
    }
    (relays, all)
}

/// The most that one of the stages would have queues for.
pub(crate) fn widest(channels: &[Edges]) -> u32 {
    let plain = channels.iter().filter(|edges| edges.plain()).count() as u32;
    let mut stages: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
    for relay in channels.iter().filter_map(|edges| edges.relay) {
        stages.entry(relay.stage).or_default().push(relay.number);
    }
    let relays = stages.into_values().map(|mut numbers| {
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() as u32
    });
    relays.fold(plain, u32::max)
}
