//! Fast paths: the steps of an unobstructed acquisition or release, as long as each of them
//! completes immediately. They are the steps of the table, in the same order, with two exceptions
//! that other ranks cannot observe: a writer that has checked for a successor before X2 does not
//! check again before X4, and a writer that was not woken and leaves as the last keeps its node's
//! turn. (The uncontended scenarios of `tests/golden/lock_counts.txt` run both ways;
//! `tests/it/twin/short.rs` follows runs over threads in a model that executes the table.)

use super::{
    Core, CountedLock, Scheme, Steps,
    guard::Writing,
    part::ReaderStep,
    scheme::{HandOver, Rules},
    steps::{At, COUNT_ME, UNCOUNT_ME},
};
use crate::{
    Result,
    lock::{
        posting::Unfinished,
        queue::{Call, Held, NodeId, NodeWord, Transition, Walk},
    },
};
use rdma_fabric::{Amo, FabricError, RemoteWord, Time};
use std::sync::Arc;

/// The progress of a walk in place: its end, or an operation that must be awaited.
pub(super) type FastResult = Result<Result<Option<Held>>, Call<Core>>;

/// The result of an operation if it is complete; otherwise whether it was posted.
pub(super) type Found = Result<u64, Unfinished>;

// From here on the table is executed. The steps are created out of line because they are large.

/// An acquisition to read, from R1 on.
#[cold]
#[inline(never)]
fn read_slow(core: &Arc<Core>, tries: bool, found: Found, deadline: Time) -> FastResult {
    Walk::<Core>::from(Steps::read(tries), found, deadline).run(core)
}

/// A reader's release, from `at` on.
#[cold]
#[inline(never)]
fn leave_read_slow(core: &Arc<Core>, at: At, found: Found) -> FastResult {
    Walk::<Core>::from(Steps { at, ..Steps::release_read() }, found, Time::MAX).run(core)
}

/// An acquisition to read whose atomic takes time.
#[cold]
#[inline(never)]
fn read_posted(core: &Arc<Core>, tries: bool, deadline: Time) -> FastResult {
    if !core.table.rules.recoverable
        && core.broken.is_whole()
        && let Ok(atomic) = core.fabric.try_atomic(&core.count, COUNT_ME)
    {
        return Err(Call::first(core, ReaderStep::Enter { tries }, atomic, deadline));
    }
    read_slow(core, tries, Err(None), deadline)
}

/// A reader's release whose atomic takes time.
#[cold]
#[inline(never)]
fn leave_read_posted(core: &Arc<Core>) -> FastResult {
    if !core.table.rules.recoverable
        && core.is_flushed()
        && let Ok(atomic) = core.fabric.try_atomic(&core.count, UNCOUNT_ME)
    {
        return Err(Call::first(core, ReaderStep::Leave, atomic, Time::MAX));
    }
    leave_read_slow(core, At::Flush, Err(None))
}

/// An acquisition to write, from the start or from a step of `node`.
#[cold]
#[inline(never)]
fn write_slow(core: &Arc<Core>, tries: bool, node: Option<(At, NodeId)>, found: Found, deadline: Time) -> FastResult {
    let mut steps = Steps::write(tries);
    if let Some((at, node)) = node {
        steps = steps.on(at, node);
        if at == At::Activate {
            (steps.word, steps.mine) = (core.table.rules.interest(node.bits()), true);
        }
    }
    Walk::<Core>::from(steps, found, deadline).run(core)
}

/// A writer's release, from `at` on.
#[cold]
#[inline(never)]
fn leave_write_slow(core: &Arc<Core>, held: Writing, at: At, found: Found) -> FastResult {
    let mut steps = Steps::release_write(held.node(), held.woken());
    match at {
        At::Flush if core.ordered_everywhere => core.table.begin_leave(&mut steps),
        At::Flush => {}
        at => steps = steps.leaving(at),
    }
    Walk::<Core>::from(steps, found, Time::MAX).run(core)
}

impl Core {
    #[inline(always)]
    fn announce(&self, rules: &Rules, step: Transition) -> Result<(), FabricError> {
        if rules.recoverable {
            self.queue.publish(step)?;
            self.link_continued();
        }
        Ok(())
    }

    /// Announces a step and executes its atomic immediately.
    #[inline(always)]
    fn announced(
        &self,
        rules: &Rules,
        step: Transition,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<u64, Unfinished> {
        if !rules.recoverable {
            // No rank checks whether another is inside.
            return self.atomic_now(word, amo);
        }
        let found = self.queue.announced_now(step, word, amo);
        self.link_continued();
        found
    }

    /// Returns whether a writer has linked itself behind this rank's node, or is about to.
    #[inline(always)]
    pub(super) fn is_followed(&self, node: NodeId, tail: &RemoteWord<u64>) -> bool {
        let next = self.own(node.slot(), NodeWord::Next);
        if !next.is_ok_and(|next| matches!(self.fabric.load(next), Ok(0))) {
            return true;
        }
        let tail = self.fabric.direct().get_word(tail);
        tail.is_some_and(|tail| tail != node.bits()) && self.is_soon_followed(node)
    }
}

impl<S: Scheme> CountedLock<S> {
    /// R1.
    #[inline(always)]
    pub(super) fn read_fast(&self, tries: bool, deadline: Time) -> Result<(), FastResult> {
        let (core, rules) = (&self.core, &S::RULES);
        if !(core.is_fast() || core.is_in_place) || !core.broken.is_whole() {
            return Err(read_posted(core, tries, deadline));
        }
        match core.announced(rules, Transition::READER_ARRIVES, &core.count, COUNT_ME) {
            Ok(old) if rules.admits_reader(old) && core.announce(rules, Transition::READER_ENTERS).is_ok() => Ok(()),
            found => Err(read_slow(core, tries, found, deadline)),
        }
    }

    /// U1 of a reader whose guard was consumed.
    #[inline(always)]
    pub(super) fn leave_read(&self) -> FastResult {
        let (core, rules) = (&self.core, &S::RULES);
        if !(core.is_fast() || core.is_in_place && core.is_flushed()) {
            return leave_read_posted(core);
        }
        match core.announced(rules, Transition::READER_LEAVES, &core.count, UNCOUNT_ME) {
            Ok(old) if !rules.is_last(old) && core.announce(rules, Transition::READER_IS_GONE).is_ok() => Ok(Ok(None)),
            found => leave_read_slow(core, At::U1, found),
        }
    }

    /// W1–W5 of a writer that finds the lock free.
    #[inline(always)]
    pub(super) fn write_fast(&self, tries: bool, deadline: Time) -> Result<Writing, FastResult> {
        if S::RULES.barges {
            return self.barge_fast(tries, deadline);
        }
        let (core, rules) = (&self.core, &S::RULES);
        let (true, Ok(writers)) = (core.is_fast() && core.broken.is_whole(), core.writers()) else {
            return Err(write_slow(core, tries, None, Err(None), deadline));
        };
        let Some(own) = core.take_clean_node() else {
            return Err(write_slow(core, tries, None, Err(None), deadline));
        };
        let node = own.keep();
        let at = |at, found| Err(write_slow(core, tries, Some((at, node)), found, deadline));
        let goes_on = Transition::writer_continues(node);
        let first = match tries {
            true => Amo::CompareSwap { expected: 0, new: node.bits() },
            false => Amo::Swap(node.bits()),
        };
        match core.announced(rules, goes_on, &writers.tail, first) {
            Ok(0) => {}
            found => return at(At::W2, found),
        }
        if rules.head_apart {
            // The provider orders W4 after it.
            if core.fabric.direct().put_word(&writers.head, node.bits()).is_none() {
                return at(At::W3, Err(None));
            }
            match core.atomic_now(&core.count, Amo::Add(rules.interest(node.bits()))) {
                Ok(0) => {}
                found => return at(At::W4, found),
            }
            let expected = rules.interest(node.bits());
            let activate = Amo::CompareSwap { expected, new: rules.granted(expected) };
            return match core.atomic_now(&core.count, activate) {
                Ok(found) if found == expected && core.announce(rules, goes_on).is_ok() => {
                    Ok(Writing::new(node, false))
                }
                found => at(At::Activate, found),
            };
        }
        match core.atomic_now(&core.count, Amo::CompareSwap { expected: 0, new: rules.active(node.bits()) }) {
            Ok(0) if core.announce(rules, goes_on).is_ok() => Ok(Writing::new(node, false)),
            found => at(At::Free, found),
        }
    }

    /// X2–X4 of a writer whose guard was consumed, and that has no successor.
    #[inline(always)]
    pub(super) fn leave_write(&self, held: Writing) -> FastResult {
        if S::RULES.barges {
            return self.leave_barged(held);
        }
        let (core, rules, node) = (&self.core, &S::RULES, held.node());
        let (true, Ok(writers)) = (core.is_fast(), core.writers()) else {
            return leave_write_slow(core, held, At::Flush, Err(None));
        };
        if rules.hand_over != HandOver::Never && core.is_followed(node, &writers.tail) {
            return leave_write_slow(core, held, At::Flush, Err(None));
        }
        let goes_on = Transition::writer_continues(node);
        match core.announced(rules, goes_on, &core.count, Amo::Add(rules.active(node.bits()).wrapping_neg())) {
            Ok(count) if !rules.must_sweep(count) => {}
            found => return leave_write_slow(core, held, At::X2, found),
        }
        if rules.hand_over == HandOver::Never && core.is_followed(node, &writers.tail) {
            return leave_write_slow(core, held, At::X4Load, Err(None));
        }
        match core.atomic_now(&writers.tail, Amo::CompareSwap { expected: node.bits(), new: 0 }) {
            Ok(tail) if tail == node.bits() => {}
            found => return leave_write_slow(core, held, At::X4, found),
        }
        // A node that was woken begins another turn; no other rank knows it any longer.
        if held.woken() && core.renew(node).is_err()
            || core.announce(rules, Transition::writer_returns(node, 3)).is_err()
        {
            return leave_write_slow(core, held, At::X4Retire, Err(None));
        }
        core.adopt(node).give_back_clean();
        Ok(Ok(None))
    }
}
