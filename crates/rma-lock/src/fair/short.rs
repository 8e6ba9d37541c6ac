//! Short paths: the steps of an acquisition or release that nobody is in the way of, as far as each
//! is over at once. They are those of the table, in the same order (`tests/it/short_paths.rs`).

use super::{
    Class, Core, Steps,
    guard::Holding,
    steps::{At, INSIDE, READER, was_waited_for},
};
use crate::{
    Result,
    in_place::NotOver,
    queue::{Call, Held, NodeId, NodeWord, Protocol, Walk},
};
use rdma_fabric::{Amo, Time};
use std::sync::Arc;

/// How far a walk went in place: to its end, or to an operation that must be awaited.
pub(super) type Went = Result<Result<Option<Held>>, Call<Core>>;

/// Continues from `steps`, whose operation is over, or was posted, or was not posted.
#[cold]
#[inline(never)]
fn go_on(core: &Arc<Core>, steps: Steps, found: Result<u64, NotOver>, deadline: Time) -> Went {
    Core::run(core, Walk::from(steps, found, deadline))
}

/// F1–F7 of a rank that finds nobody.
#[inline(always)]
pub(super) fn enter(core: &Arc<Core>, class: Class, tries: bool, deadline: Time) -> Result<Holding, Went> {
    let steps = Steps::acquire(class, tries);
    if !core.is_fast() || !core.broken.is_whole() {
        return Err(go_on(core, steps, Err(None), deadline));
    }
    let Some(own) = core.take_fresh_node(core.published.lane()) else { return Err(go_on(core, steps, Err(None), deadline)) };
    let node = own.keep();
    let at = |at, found| Err(go_on(core, steps.on(at, node), found, deadline));
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
        Class::Writer => match core.fabric.get_word_now(&core.state) {
            Some(0) => {}
            found => return at(At::F4, found.ok_or(None)),
        },
    }
    Ok(Holding { node, woken: false })
}

/// G1 and G3 of a holder whose guard is gone, and behind which nobody is.
#[inline(always)]
pub(super) fn leave(core: &Arc<Core>, class: Class, Holding { node, woken }: Holding) -> Went {
    let steps = Steps::release(class, node, woken);
    let said = if class == Class::Reader { INSIDE } else { 0 };
    if !core.is_fast() || woken || is_followed(core, node, said) {
        return go_on(core, steps, Err(None), Time::MAX);
    }
    let end = Amo::CompareSwap { expected: node.bits(), new: 0 };
    match core.atomic_now(&core.tail, end) {
        Ok(tail) if tail == node.bits() => {}
        found => return go_on(core, steps.leaving(At::G1), found, Time::MAX),
    }
    let steps = Steps { fresh: true, ..steps.leaving(At::G3) };
    if class == Class::Reader {
        let next = core.own(node.slot(), NodeWord::Next);
        if !next.is_ok_and(|next| core.fabric.store(next, 0).is_ok()) {
            return go_on(core, Steps { at: At::G1Unsay, ..steps }, Err(None), Time::MAX);
        }
        match core.atomic_now(&core.state, Amo::Add(READER.wrapping_neg())) {
            Ok(found) if !was_waited_for(found.wrapping_sub(READER)) => {}
            found => return go_on(core, steps, found, Time::MAX),
        }
    }
    core.adopt(node).give_back_fresh();
    Ok(Ok(None))
}

/// Returns whether somebody has linked itself behind this rank's node, which says `said`.
#[inline(always)]
fn is_followed(core: &Core, node: NodeId, said: u64) -> bool {
    let next = core.own(node.slot(), NodeWord::Next);
    !next.is_ok_and(|next| matches!(core.fabric.load(next), Ok(link) if link == said))
}
