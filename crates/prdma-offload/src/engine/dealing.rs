//! Which queue serves which channel.

use super::program::Shape;
use crate::{Form, init::Agreed};

/// What a channel asks of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges {
    /// Slots of the data that are sent along it, if any are.
    pub(crate) data: Option<u64>,
    /// Whether it is received along.
    pub(crate) ready: bool,
}

impl Edges {
    pub(crate) fn of(agreed: &Agreed) -> Self {
        Edges { data: agreed.data_slots(), ready: agreed.inn.is_some() }
    }
}

/// The queues of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dealt {
    /// What each has to do. One that only sends READYs is alone.
    pub(crate) queues: Vec<Shape>,
    /// By channel: which of them serves it.
    pub(crate) served: Vec<usize>,
}

/// Deal the channels that are sent along out among as many queues as `form` has for them, in turn; those that are only received along go to the first.
pub(crate) fn deal(form: Form, channels: &[Edges]) -> Dealt {
    let sending = channels.iter().filter(|edges| edges.data.is_some()).count();
    let many = (form.queues(sending as u32) as usize).max(usize::from(!channels.is_empty()));
    let mut next = (0..many).cycle();
    let mut turn = |edges: &Edges| if edges.data.is_some() { next.next().unwrap_or(0) } else { 0 };
    let served: Vec<usize> = channels.iter().map(&mut turn).collect();
    let mut queues = vec![Shape { readies: 0, edges: 0, data: 0 }; many];
    for (edges, by) in channels.iter().zip(&served) {
        let shape = &mut queues[*by];
        shape.readies += u64::from(edges.ready);
        shape.edges += u64::from(edges.data.is_some());
        shape.data += edges.data.unwrap_or(0);
    }
    Dealt { queues, served }
}
