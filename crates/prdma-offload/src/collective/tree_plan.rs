//! One queue: up a tree, and down it again (MRC).
//!
//! ```text
//! leaf   UP
//! inner  NOP ... NOP UP | DOWN ... DOWN                  an UP for each child but one, the own one; each segment to each child
//! root   NOP ... NOP SELF ... SELF | DOWN ... DOWN
//! ```
//! An UP from below releases one slot: the last of them, whichever it is, the own UP, or at the root a put to the own queue, which releases all that goes
//! down. What comes from above releases as many slots as there are children: the forwarding of just this segment.
//!
//! # Credit
//! An iteration of T slots receives credit for T. All UPs that a member gets of iteration k come before anything comes down to it, for the root waits for
//! all; and an UP(k+1) of a child comes after the last DOWN(k) to that child, so after all slots of iteration k have been released. So credit
//! comes in the order in which the slots stand, whatever the network does, and there is no need to tell whose it is. A leaf's UP(k+1) is released by the
//! last DOWN(k), and leaves when it is posted.
//!
//! # Memory
//! UP carries what the members below have, into the parent's gather area at their place. Nobody's CPU reads that; a child writes there again after
//! DOWN(k), which follows the parent's UP(k) that read it. The root's first put to itself copies it all to where it goes down from: a child that has its
//! DOWN(k) may gather again while others' still leaves. The result areas are written after all members have started.

use super::{
    plan::{Area, MOST_SPS, Plan, Put, Queue, Slot, Span, nops, release},
    tree::Tree,
};

/// What a collective moves along the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Bytes that each member adds on the way up.
    pub(super) up: u64,
    /// Bytes that come down.
    pub(super) down: u64,
    /// In so many segments; at least 1.
    pub(super) segments: u64,
}

impl Load {
    /// Segment `number`: it starts where memory may be accessed in cells of any width.
    pub(super) fn segment(&self, number: u64) -> Option<Span> {
        let each = self.down.div_ceil(self.segments).next_multiple_of(8);
        let start = (number * each).min(self.down);
        let bytes = each.min(self.down - start);
        (bytes > 0).then_some(Span { from: (Area::Result, start), at: (Area::Result, start), bytes })
    }

    /// What `member` and those below it send up.
    pub(super) fn gathered(&self, tree: &Tree, member: usize) -> Option<Span> {
        let parent = tree.parent(member)?;
        let at = (tree.place(member) - tree.place(parent)) as u64 * self.up;
        let bytes = tree.below(member) as u64 * self.up;
        (bytes > 0).then_some(Span { from: (Area::Gather, 0), at: (Area::Gather, at), bytes })
    }

    /// What the root copies between the way up and the way down.
    pub(super) fn turned(&self) -> Option<Span> {
        let copies = self.up > 0 && self.down > 0;
        copies.then_some(Span { from: (Area::Gather, 0), at: (Area::Result, 0), bytes: self.down })
    }
}

/// The part of `me`. A group of one has no queue.
pub(super) fn plan(tree: &Tree, load: &Load, me: usize) -> Plan {
    if tree.members == 1 {
        return Plan::default();
    }
    let children = tree.children(me);
    let mut queue = Queue::default();
    queue.slots.extend(nops(children.len().saturating_sub(1)));
    match tree.parent(me) {
        None => queue.slots.extend(release(me, 0, children.len() * load.segments as usize, load.turned())),
        Some(parent) => {
            let span = load.gathered(tree, me);
            queue.slots.push(Some(Put { to: (parent, 0), span, sps: 1, notice: false }));
            queue.ahead = u32::from(children.is_empty());
            queue.notices = 1;
        }
    }
    for segment in 0..load.segments {
        if tree.parent(me).is_some() && children.len() > MOST_SPS {
            queue.slots.extend(release(me, 0, children.len(), None));
        }
        let last = segment + 1 == load.segments;
        queue.slots.extend(children.iter().map(|child| -> Slot {
            let sps = match tree.children(*child).len() {
                0 => u8::from(last),
                below if below <= MOST_SPS => below as u8,
                _ => 1,
            };
            Some(Put { to: (*child, 0), span: load.segment(segment), sps, notice: last })
        }));
    }
    Plan { queues: vec![queue], ..Plan::default() }
}
