//! The contents of queues for one iteration of a collective, before any address is known.
//!
//! A plan contains the slots of each member's queues; `program` turns it into commands, and the
//! tests execute plans in every possible order.

use super::{
    fast::steps,
    tree::{Load, Tree},
};
use crate::engine::{MOST_SPS as MOST, ring_depth};

/// The maximum number of slots that one put releases.
pub(super) const MOST_SPS: usize = MOST as usize;

/// Memory of a collective at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    /// The blocks of the members below, on their way up.
    Gather,
    /// The data on their way down: the program's block, or all blocks.
    Result,
}

impl Area {
    fn other(self) -> Area {
        match self {
            Area::Gather => Area::Result,
            Area::Result => Area::Gather,
        }
    }

    /// Returns the area of an iteration's blocks, if plans are [alternating](Plan::alternating).
    pub(super) fn alternating(iteration: u64) -> Area {
        if iteration % 2 == 1 { Area::Gather } else { Area::Result }
    }
}

/// Bytes that a put carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: (Area, u64),
    pub(super) at: (Area, u64),
    pub(super) bytes: u64,
}

/// A put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Put {
    /// The destination: a member, and the number of its queue.
    pub(super) to: (usize, usize),
    /// The bytes; `None` if the put only announces its arrival.
    pub(super) span: Option<Span>,
    /// The number of slots of that queue that it releases.
    pub(super) sps: u8,
    /// Whether the member receives a notice of it.
    pub(super) notice: bool,
}

impl Put {
    /// Returns this put for an even iteration, if plans are [alternating](Plan::alternating).
    pub(super) fn other(self) -> Put {
        let other =
            |span: Span| Span { from: (span.from.0.other(), span.from.1), at: (span.at.0.other(), span.at.1), ..span };
        Put { span: self.span.map(other), ..self }
    }
}

/// The content of one slot; `None` is a NOP.
pub(super) type Slot = Option<Put>;

/// One queue. An iteration completes when the last slot has started and the notices have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) slots: Vec<Slot>,
    /// The number of slots of the first iteration that do not need credit.
    pub(super) ahead: u32,
    /// Notices of an iteration.
    pub(super) notices: u32,
}

impl Queue {
    /// Returns the number of slots of a ring for the queue.
    pub(super) fn depth(&self) -> u64 {
        ring_depth(self.slots.len() as u64)
    }
}

/// The queues of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) queues: Vec<Queue>,
    /// Whether the two areas are exchanged in even iterations.
    pub(super) alternating: bool,
}

/// Returns the number of puts to the same queue that are needed to release `slots` other slots and
/// one another, except for the first.
fn chain(slots: usize) -> usize {
    if slots == 0 { 0 } else { (slots - 1).div_ceil(MOST_SPS - 1).max(1) }
}

/// Returns puts of `me` to its own queue `queue` that release one another and then `slots` more.
/// The first carries `span`.
pub(super) fn release(me: usize, queue: usize, slots: usize, span: Option<Span>) -> Vec<Slot> {
    let many = chain(slots);
    let mut owed = (many + slots).saturating_sub(1);
    let put = |number| {
        let sps = owed.min(MOST_SPS);
        owed -= sps;
        let span = if number == 0 { span } else { None };
        Some(Put { to: (me, queue), span, sps: sps as u8, notice: false })
    };
    (0..many).map(put).collect()
}

/// Returns this many NOPs.
pub(super) fn nops(many: usize) -> impl Iterator<Item = Slot> {
    core::iter::repeat_n(None, many)
}

/// One put, and the word that reports its arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuPut {
    /// Words of this member that must have this iteration's number.
    pub(super) needs: Vec<usize>,
    /// The destination of the iteration's number: a member, and the number of its word.
    pub(super) to: (usize, usize),
    pub(super) span: Option<Span>,
}

/// The puts of a member whose CPU executes them. An iteration completes when all are done and the
/// words of `finally` have its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuPlan {
    pub(super) words: usize,
    pub(super) puts: Vec<CpuPut>,
    pub(super) finally: Vec<usize>,
}

/// Returns the puts of `me` in a dissemination. Dependencies are explicit, so nothing is counted.
pub(super) fn cpu_barrier(members: usize, me: usize) -> CpuPlan {
    let steps = steps(members);
    let put = |step: usize| CpuPut { needs: (0..step).collect(), to: ((me + (1 << step)) % members, step), span: None };
    CpuPlan { words: steps, puts: (0..steps).map(put).collect(), finally: (0..steps).collect() }
}

/// Returns the puts of `me` up the tree and down again, in the order of [`super::tree`]. The words
/// are those of the children, of the root's turn, and of the segments.
pub(super) fn cpu_tree(tree: &Tree, load: &Load, me: usize) -> CpuPlan {
    let children = tree.children(me);
    let (ups, segments) = (0..children.len(), load.segments as usize);
    let turn = children.len();
    let down = |children: usize, segment: usize| children + 1 + segment;
    let mut puts = Vec::new();
    let turned = load.turned().filter(|_| tree.members > 1);
    match (tree.parent(me), turned) {
        (Some(parent), _) => {
            puts.push(CpuPut {
                needs: ups.clone().collect(),
                to: (parent, tree.number(me)),
                span: load.gathered(tree, me),
            });
        }
        (None, Some(_)) => puts.push(CpuPut { needs: ups.clone().collect(), to: (me, turn), span: turned }),
        (None, None) => {}
    }
    for segment in 0..segments {
        for child in &children {
            let needs = match (tree.parent(me), turned) {
                (Some(_), _) => vec![down(children.len(), segment)],
                (None, Some(_)) => vec![turn],
                (None, None) => ups.clone().collect(),
            };
            let to = (*child, down(tree.children(*child).len(), segment));
            puts.push(CpuPut { needs, to, span: load.segment(segment as u64) });
        }
    }
    let finally = match tree.parent(me) {
        Some(_) => (0..segments).map(|segment| down(children.len(), segment)).collect(),
        None => Vec::new(),
    };
    CpuPlan { words: children.len() + 1 + segments, puts, finally }
}
