//! About log2 N queues: the data of all members are disseminated to all, doubled in each step.
//!
//! # Steps
//! A member collects the data of the members that follow it, starting with its own. In step i, it
//! passes all data that it has, of 2^i members, or in the last step those of the remaining ones, to
//! the member 2^i before it, for which they are the next ones. After L = ceil(log2 N) steps, all
//! members have the data of all, for any N.
//! ```text
//! queue 0       P0                      leaves at start; the last step's arrival releases the next one
//! queue 1       P1 SELF                 both released by P0 of the one 1 further on
//! queue i       NOP ... NOP Pi SELF     released by P(i-1) of the one 2^(i-1) further on, and by SELF of queue i - 1: then this step's data is complete
//! queue L - 1   NOP ... NOP P(L-1)
//! ```
//! The arrival releases Pi and SELF, or that many slots.
//!
//! # Barrier
//! SELF releases the same number of slots as the arrival, and there are as many NOPs: two events
//! that must both have occurred are counted, not distinguished. When the slots of Pi(k) are
//! released, either both have occurred k times, or one of them has occurred more often. If it is
//! the arrival, its sender has started iteration k + 1 or a later one; if it is SELF, this member
//! has. In either case that member has left barrier k, so all have started it: then the
//! announcement of Pi(k) is true, whichever event released it. Credit is neither lost nor created:
//! a late arrival counts for the next iteration, to which the same argument applies.
//!
//! # Allreduce
//! Pi carries the blocks of the members that it announces. They must have arrived when it leaves,
//! so SELF releases twice as many slots as an arrival, and there are the same number of NOPs.
//! * No member starts k + 2 before all have ended k: to end k + 1, it needs the blocks of all. So
//!   before SELF(k), at most the arrivals of k and of k + 1 occur; they release the NOPs of
//!   iteration k, and not Pi(k).
//! * SELF(k) alone releases the NOPs.
//! * SELF(k + 1) follows this member's start of k + 1, and so all arrivals of k.
//!
//! An iteration receives credit for exactly its number of slots; an arrival that is too early is
//! the credit of its own iteration.
//!
//! A member that is ahead sends blocks of k + 1 to a member that still folds those of k. So areas
//! alternate: odd iterations use the gather area, even ones the result area. Blocks of k + 2 arrive
//! only after all members have ended k.
//!
//! A broadcast with more queues: members that do not depend on each other do not wait for each
//! other.
//!
//! ```text
//! root       a queue for each child        DOWN ... DOWN                    released by the child's UP
//! others     from above                    UP | SELF ... SELF ...           each segment releases a put to each of the queues below
//!            a queue for each child        NOP ... NOP | DOWN ... DOWN      as many NOPs as segments; the child's UP releases the same number of slots,
//!                                                                           each segment one
//! ```
//! UP reports that a member is ready, not that all below it are: a late member delays those below
//! it, and the wait of its parent. With s segments, d of which arrived before the child's UP, the
//! NOPs take these d; UP releases the other NOPs and d DOWNs. An UP(k+1) follows the last DOWN(k)
//! to that child, and a segment of k + 1 follows this member's start, so credit of two iterations
//! never mixes.

use super::{
    plan::{Area, MOST_SPS, Plan, Put, Queue, Span, nops},
    tree::{Load, Shape, Tree},
};

/// Returns the number of steps of a dissemination.
pub(super) fn steps(members: usize) -> usize {
    members.next_power_of_two().trailing_zeros() as usize
}

/// Returns the queues of `me` in a barrier.
pub(super) fn barrier(members: usize, me: usize) -> Plan {
    plan(members, me, 0, 1)
}

/// Returns the queues of `me` in an allreduce with blocks of this many bytes.
pub(super) fn allreduce(members: usize, me: usize, block: u64) -> Plan {
    Plan { alternating: true, ..plan(members, me, block, 2) }
}

/// Returns the queues of `me` in a dissemination whose SELFs release `weight` times as many slots
/// as an arrival.
fn plan(members: usize, me: usize, block: u64, weight: u8) -> Plan {
    let steps = steps(members);
    // The slots that an arrival of step i releases: Pi, and SELF behind it.
    let group = |step: usize| 1 + u8::from(step + 1 < steps);
    let queue = |step: usize| {
        let (first, last) = (step == 0, step + 1 == steps);
        let far = 1 << step;
        let bytes = far.min(members - far) as u64 * block;
        let span = Span { from: (Area::Gather, 0), at: (Area::Gather, far as u64 * block), bytes };
        let (queue, sps) = if last { (0, 1) } else { (step + 1, group(step + 1)) };
        let put =
            Put { to: ((me + members - far) % members, queue), span: (bytes > 0).then_some(span), sps, notice: last };
        let mut slots = Vec::new();
        if step >= 2 {
            slots.extend(nops(usize::from(weight * group(step))));
        }
        slots.push(Some(put));
        if !first && !last {
            slots.push(Some(Put { to: (me, step + 1), span: None, sps: weight * group(step + 1), notice: false }));
        }
        Queue { slots, ahead: u32::from(first), notices: u32::from(first) }
    };
    Plan { queues: (0..steps).map(queue).collect(), ..Plan::default() }
}

/// Returns the queues of `me` in a broadcast; `None` if one queue is as good, or if counts exceed
/// the limit of a put.
pub(super) fn broadcast(tree: &Tree, load: &Load, me: usize) -> Option<Plan> {
    let segments = load.segments as usize;
    let fits = segments <= MOST_SPS && tree.children(tree.root).len() < MOST_SPS;
    if tree.shape == Shape::Chain || !fits {
        return None;
    }
    let (children, parent) = (tree.children(me), tree.parent(me));
    let mut queues = Vec::new();
    // Below the root, the first queue is for data from above.
    let first = usize::from(parent.is_some());
    if let Some(parent) = parent {
        let number = tree.number(me) + usize::from(tree.parent(parent).is_some());
        let mut above = Queue { ahead: 1, notices: 1, ..Queue::default() };
        above.slots.push(Some(Put { to: (parent, number), span: None, sps: segments as u8, notice: false }));
        for _ in 0..segments {
            let release = |number| Some(Put { to: (me, first + number), span: None, sps: 1, notice: false });
            above.slots.extend((0..children.len()).map(release));
        }
        queues.push(above);
    }
    for child in children {
        let mut queue = Queue::default();
        queue.slots.extend(nops(if parent.is_some() { segments } else { 0 }));
        let below = tree.children(child).len() as u8;
        queue.slots.extend((0..load.segments).map(|segment| {
            let last = segment + 1 == load.segments;
            let span = load.segment(segment);
            Some(Put { to: (child, 0), span, sps: below + u8::from(last), notice: last })
        }));
        queues.push(queue);
    }
    Some(Plan { queues, ..Plan::default() })
}
