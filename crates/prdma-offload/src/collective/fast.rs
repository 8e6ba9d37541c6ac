//! A broadcast with more queues: members that do not depend on each other do not wait for each other.
//!
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
        let mut above = Queue { ahead: 1, notices: 1, ..Queue::default() };
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
