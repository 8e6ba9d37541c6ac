//! Short paths: the steps of an acquisition or release that nobody is in the way of, as far as each
//! is over at once. They are those of the table, in the same order (`tests/it/short_paths.rs`).

use super::{
    Core, CountedLock, Scheme, Steps,
    guard::Writing,
    scheme::{HandOver, Rules},
    steps::{At, COUNT_ME, UNCOUNT_ME},
};
use crate::{
    Result,
    in_place::NotOver,
    queue::{Call, Held, NodeId, NodeWord, Protocol, Transition, Walk},
};
use rdma_fabric::{Amo, FabricError, RemoteWord, Time};
use std::sync::Arc;

/// How far a walk went in place: to its end, or to an operation that must be awaited.
pub(super) type Went = Result<Result<Option<Held>>, Call<Core>>;

/// Continues from `steps`, whose operation is over, or was posted, or was not posted.
#[cold]
#[inline(never)]
pub(super) fn go_on(core: &Arc<Core>, steps: Steps, found: Result<u64, NotOver>, deadline: Time) -> Went {
    Core::run(core, Walk::from(steps, found, deadline))
}

impl Core {
    #[inline(always)]
    fn say(&self, rules: &Rules, step: Transition) -> Result<(), FabricError> {
        if rules.recoverable {
            self.queue.publish(step)?;
            self.link_went_on();
        }
        Ok(())
    }

    /// Announces a step and does its atomic at once.
    #[inline(always)]
    fn announced(
        &self,
        rules: &Rules,
        step: Transition,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<u64, NotOver> {
        if !rules.recoverable {
            // Nobody asks whether a rank is inside.
            return self.atomic_now(word, amo);
        }
        let found = self.queue.announced_now(self.published.lane(), step, word, amo);
        self.link_went_on();
        found
    }

    /// Returns whether a writer has linked itself behind this rank's node, or is about to.
    #[inline(always)]
    fn is_followed(&self, node: NodeId, tail: &RemoteWord<u64>) -> bool {
        let next = self.own(node.slot(), NodeWord::Next);
        if !next.is_ok_and(|next| matches!(self.fabric.load(next), Ok(0))) {
            return true;
        }
        let tail = self.fabric.get_word_now(tail);
        tail.is_some_and(|tail| tail != node.bits()) && self.is_soon_followed(node)
    }
}

impl<S: Scheme> CountedLock<S> {
    /// R1.
    #[inline(always)]
    pub(super) fn read_now(&self, tries: bool, deadline: Time) -> Result<(), Went> {
        let (core, rules) = (&self.core, &S::RULES);
        if !core.is_fast() || !core.broken.is_whole() {
            return Err(go_on(core, Steps::read(tries), Err(None), deadline));
        }
        match core.announced(rules, Transition::READER_ARRIVES, &core.count, COUNT_ME) {
            Ok(old)
                if old & (rules.keeps_out | rules.over_limit()) == 0
                    && core.say(rules, Transition::READER_ENTERS).is_ok() =>
            {
                Ok(())
            }
            found => Err(go_on(core, Steps::read(tries), found, deadline)),
        }
    }

    /// U1 of a reader whose guard is gone.
    #[inline(always)]
    pub(super) fn leave_read(&self) -> Went {
        let (core, rules) = (&self.core, &S::RULES);
        if !core.is_fast() {
            return go_on(core, Steps::release_read(), Err(None), Time::MAX);
        }
        match core.announced(rules, Transition::READER_LEAVES, &core.count, UNCOUNT_ME) {
            Ok(old) if !rules.is_last(old) && core.say(rules, Transition::READER_IS_GONE).is_ok() => Ok(Ok(None)),
            found => go_on(core, Steps { at: At::U1, ..Steps::release_read() }, found, Time::MAX),
        }
    }

    /// W1–W5 of a writer that finds nobody.
    #[inline(always)]
    pub(super) fn write_now(&self, tries: bool, deadline: Time) -> Result<Writing, Went> {
        if S::RULES.barges {
            return self.barge_now(tries, deadline);
        }
        let (core, rules, steps) = (&self.core, &S::RULES, Steps::write(tries));
        let (true, Ok(writers)) = (core.is_fast() && core.broken.is_whole(), core.writers()) else {
            return Err(go_on(core, steps, Err(None), deadline));
        };
        let Some(own) = core.take_fresh_node(core.published.lane()) else { return Err(go_on(core, steps, Err(None), deadline)) };
        let node = own.keep();
        let at = |at, found| Err(go_on(core, steps.on(at, node), found, deadline));
        let goes_on = Transition::writer_goes_on(node);
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
            if core.fabric.put_word_now(&writers.head, node.bits()).is_none() {
                return at(At::W3, Err(None));
            }
            match core.atomic_now(&core.count, Amo::Add(rules.interest(node.bits()))) {
                Ok(0) => {}
                found => return at(At::W4, found),
            }
            let expected = rules.interest(node.bits());
            let activate = Amo::CompareSwap { expected, new: rules.granted(expected) };
            return match core.atomic_now(&core.count, activate) {
                Ok(found) if found == expected && core.say(rules, goes_on).is_ok() => {
                    Ok(Writing::new(node, false))
                }
                found => {
                    let steps = Steps { word: expected, mine: true, ..steps.on(At::Activate, node) };
                    Err(go_on(core, steps, found, deadline))
                }
            };
        }
        match core.atomic_now(&core.count, Amo::CompareSwap { expected: 0, new: rules.active(node.bits()) }) {
            Ok(0) if core.say(rules, goes_on).is_ok() => Ok(Writing::new(node, false)),
            found => at(At::Free, found),
        }
    }

    /// X2–X4 of a writer whose guard is gone, and behind which nobody is.
    #[inline(always)]
    pub(super) fn leave_write(&self, held: Writing) -> Went {
        if S::RULES.barges {
            return self.leave_barged(held);
        }
        let (core, rules, node) = (&self.core, &S::RULES, held.node());
        let steps = Steps::release_write(node, held.woken());
        let (true, Ok(writers)) = (core.is_fast(), core.writers()) else {
            return go_on(core, steps, Err(None), Time::MAX);
        };
        if rules.hand_over != HandOver::Never && core.is_followed(node, &writers.tail) {
            return go_on(core, steps, Err(None), Time::MAX);
        }
        let goes_on = Transition::writer_goes_on(node);
        match core.announced(rules, goes_on, &core.count, Amo::Add(rules.active(node.bits()).wrapping_neg())) {
            Ok(count) if !rules.must_sweep(count) => {}
            found => return go_on(core, steps.leaving(At::X2), found, Time::MAX),
        }
        if rules.hand_over == HandOver::Never && core.is_followed(node, &writers.tail) {
            return go_on(core, steps.leaving(At::X4Load), Err(None), Time::MAX);
        }
        match core.atomic_now(&writers.tail, Amo::CompareSwap { expected: node.bits(), new: 0 }) {
            Ok(tail) if tail == node.bits() => {}
            found => return go_on(core, steps.leaving(At::X4), found, Time::MAX),
        }
        // A node that was woken begins another turn; nobody knows it any more.
        if held.woken() && core.renew(node).is_err()
            || core.say(rules, Transition::writer_goes_back(node, 3)).is_err()
        {
            return go_on(core, steps.leaving(At::X4Retire), Err(None), Time::MAX);
        }
        core.adopt(node).give_back_fresh();
        Ok(Ok(None))
    }
}
