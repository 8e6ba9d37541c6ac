//! Fast paths: the steps of an unobstructed acquisition or release, as long as each of them
//! completes immediately. They are the steps of the table, in the same order. (The uncontended
//! scenarios of `tests/golden/lock_counts.txt` run both ways; `tests/it/twin/short.rs` follows runs
//! over threads in a model that executes the table.)

use super::{
    Class, Core, Steps,
    guard::Holding,
    steps::{At, INSIDE, READER, was_waited_for},
};
use crate::{
    Result,
    lock::{
        posting::Unfinished,
        queue::{Call, Held, NodeId, NodeWord, Walk},
    },
};
use rdma_fabric::{Amo, Time};
use std::sync::Arc;

/// The progress of a walk in place: its end, or an operation that must be awaited.
pub(super) type FastResult = Result<Result<Option<Held>>, Call<Core>>;

/// The result of an operation if it is complete; otherwise whether it was posted.
type Found = Result<u64, Unfinished>;

// From here on the table is executed. The steps are created out of line because they are large.

/// An acquisition, from the start or from a step of a node.
#[cold]
#[inline(never)]
fn enter_slow(
    core: &Arc<Core>,
    (class, tries): (Class, bool),
    node: Option<(At, NodeId)>,
    found: Found,
    deadline: Time,
) -> FastResult {
    let steps = Steps::acquire(class, tries);
    let steps = node.map_or(steps, |(at, node)| steps.on(at, node));
    Walk::<Core>::from(steps, found, deadline).run(core)
}

/// A release, from `at` on.
#[cold]
#[inline(never)]
fn leave_slow(core: &Arc<Core>, class: Class, held: Holding, at: At, found: Found) -> FastResult {
    let steps = Steps::release(class, held.node, held.woken);
    let steps = match at {
        At::Flush => steps,
        At::G1 => steps.leaving(at),
        // Out of the queue as the last.
        _ => Steps { clean: true, ..steps.leaving(at) },
    };
    Walk::<Core>::from(steps, found, Time::MAX).run(core)
}

/// F1–F7 of a rank that finds the lock free.
#[inline(always)]
pub(super) fn enter(core: &Arc<Core>, class: Class, tries: bool, deadline: Time) -> Result<Holding, FastResult> {
    if !core.is_fast() || !core.broken.is_whole() {
        return Err(enter_slow(core, (class, tries), None, Err(None), deadline));
    }
    let Some(own) = core.take_clean_node() else {
        return Err(enter_slow(core, (class, tries), None, Err(None), deadline));
    };
    let node = own.keep();
    let at = |at, found| Err(enter_slow(core, (class, tries), Some((at, node)), found, deadline));
    let first = match tries {
        true => Amo::CompareSwap { expected: 0, new: node.bits() },
        false => Amo::Swap(node.bits()),
    };
    match core.atomic_now(&core.tail, first) {
        Ok(0) => {}
        found => return at(At::F1, found),
    }
    match class {
        Class::Reader => {
            match core.atomic_now(&core.state, Amo::Add(READER)) {
                Ok(_) => {}
                found => return at(At::F3, found),
            }
            let Ok(next) = core.own(node.slot(), NodeWord::Next) else { return at(At::F7, Err(None)) };
            match core.atomic_now(&next.as_remote(), Amo::CompareSwap { expected: 0, new: INSIDE }) {
                Ok(0) => {}
                found => return at(At::F7, found),
            }
        }
        Class::Writer => match core.fabric.direct().get_word(&core.state) {
            Some(0) => {}
            found => return at(At::F4, found.ok_or(None)),
        },
    }
    Ok(Holding { node, woken: false })
}

/// G1 and G3 of a holder whose guard was consumed, and that has no successor.
#[inline(always)]
pub(super) fn leave(core: &Arc<Core>, class: Class, held: Holding) -> FastResult {
    let Holding { node, woken } = held;
    let said = if class == Class::Reader { INSIDE } else { 0 };
    if !core.is_fast() || woken || is_followed(core, node, said) {
        return leave_slow(core, class, held, At::Flush, Err(None));
    }
    let end = Amo::CompareSwap { expected: node.bits(), new: 0 };
    match core.atomic_now(&core.tail, end) {
        Ok(tail) if tail == node.bits() => {}
        found => return leave_slow(core, class, held, At::G1, found),
    }
    if class == Class::Reader {
        let next = core.own(node.slot(), NodeWord::Next);
        if !next.is_ok_and(|next| core.fabric.store(next, 0).is_ok()) {
            return leave_slow(core, class, held, At::G1Unsay, Err(None));
        }
        match core.atomic_now(&core.state, Amo::Add(READER.wrapping_neg())) {
            Ok(found) if !was_waited_for(found.wrapping_sub(READER)) => {}
            found => return leave_slow(core, class, held, At::G3, found),
        }
    }
    core.adopt(node).give_back_clean();
    Ok(Ok(None))
}

/// Returns whether a successor has linked itself behind this rank's node, whose next word was
/// `said` before that.
#[inline(always)]
fn is_followed(core: &Core, node: NodeId, said: u64) -> bool {
    let next = core.own(node.slot(), NodeWord::Next);
    !next.is_ok_and(|next| matches!(core.fabric.load(next), Ok(link) if link == said))
}
