//! More queues: what does not depend on each other does not wait for each other.
//!
//! # Barrier
//! Dissemination in L = ceil(log2 N) steps, a queue for each. In step i a member tells the one 2^i further on that it, and all of whom it knows, have
//! started.
//! ```text
//! queue 0       P0                  leaves at start; the last step's arrival releases the next one
//! queue 1       P1 SELF             both released by P0 of 1 before
//! queue i       NOP NOP Pi SELF     one half released by P(i-1) of 2^(i-1) before, one by SELF of queue i - 1, in any order
//! queue L - 1   NOP P(L-1)
//! ```
//! Two that must both have come are counted, not told apart. When the slots of Pi(k) are released, either both have come k times; or one has come more
//! often. If that is the arrival, its sender has begun iteration k + 1 or a later one; if it is SELF, this member has. Either has left barrier k, so all have
//! started it: then what Pi(k) tells is true, whoever released it. Credit is neither lost nor made: a late arrival counts for the next iteration, of
//! which the same can be said.
//!
//! # Broadcast
//! ```text
//! root       a queue for each child        DOWN ... DOWN                    released by the child's UP
//! others     from above                    UP | SELF ... SELF ...           each segment releases a put to each of the queues below
//!            a queue for each child        NOP ... NOP | DOWN ... DOWN      as many NOPs as segments; the child's UP releases so many slots,
//!                                                                           each segment one
//! ```
//! UP says that a member is ready, not that all below it are: a late one holds up those below it, and the wait of its parent.
//! With s segments, d of which came before the child's UP, the NOPs take these d; UP releases the other NOPs and d DOWNs. An UP(k+1) follows the last DOWN(k) to that child, and a segment of
//! k + 1 follows the own start, so credit of two iterations never mixes.

use super::{
    plan::{MOST_SPS, Plan, Put, Queue, nops},
    tree::{Shape, Tree},
    tree_plan::Load,
};

/// Steps of a barrier.
pub(super) fn steps(members: usize) -> usize {
    members.next_power_of_two().trailing_zeros() as usize
}

/// The part of `me` in a barrier.
pub(super) fn barrier(members: usize, me: usize) -> Plan {
    let steps = steps(members);
    // What step i releases: Pi, and the put that passes it on.
    let group = |step: usize| 1 + u8::from(step + 1 < steps);
    let queue = |step: usize| {
        let next = (me + (1 << step)) % members;
        let (to, sps, notice) =
            if step + 1 == steps { ((next, 0), 1, true) } else { ((next, step + 1), group(step + 1), false) };
        let mut queue = Queue { ahead: u32::from(step == 0), ..Queue::default() };
        if step >= 2 {
            queue.slots.extend(nops(group(step).into()));
        }
        queue.slots.push(Some(Put { to, span: None, sps, notice }));
        if step >= 1 && step + 1 < steps {
            queue.slots.push(Some(Put { to: (me, step + 1), span: None, sps: group(step + 1), notice: false }));
        }
        queue.notices = u32::from(step == 0);
        queue
    };
    Plan { queues: (0..steps).map(queue).collect(), ..Plan::default() }
}

/// The part of `me` in a broadcast; `None` where one queue is as good, or counts do not fit in what a put can carry.
pub(super) fn broadcast(tree: &Tree, load: &Load, me: usize) -> Option<Plan> {
    let segments = load.segments as usize;
    let fits = segments <= MOST_SPS && tree.children(tree.root).len() < MOST_SPS;
    if tree.shape == Shape::Chain || !fits {
        return None;
    }
    let (children, parent) = (tree.children(me), tree.parent(me));
    let mut queues = Vec::new();
    // Below the root the first queue is what comes from above.
    let first = usize::from(parent.is_some());
    if let Some(parent) = parent {
        let number = tree.number(me) + usize::from(tree.parent(parent).is_some());
        let mut above = Queue { ahead: 1, notices: 1, chained: !children.is_empty(), ..Queue::default() };
        above.slots.push(Some(Put { to: (parent, number), span: None, sps: segments as u8, notice: false }));
        for _ in 0..segments {
            let tell = |number| Some(Put { to: (me, first + number), span: None, sps: 1, notice: false });
            above.slots.extend((0..children.len()).map(tell));
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
