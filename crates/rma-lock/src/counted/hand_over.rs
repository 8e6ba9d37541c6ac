//! Writers that meet: W6, W7, and the hand-over to a successor that is known, as far as they need no
//! wait for the network.
//!
//! Between a waiter's wake and its own release stands nothing but what it does inside: whoever hands
//! over wakes first, and tidies its node, and publishes that, afterwards.

use super::{
    Core, Scheme,
    writer::{NotInside, WriteEntry, Writing, not_inside},
    writer_exit::{NotOut, WriteExit, not_out, pass_on_to},
};
use crate::{
    in_place::Posting,
    queue::{Lane, NodeId, NodeWord, Own, Transition, Wait, Waking},
};
use rdma_fabric::Amo;

impl<S: Scheme> Core<S> {
    /// W6 behind the writer whose node's bits are `before`, and W7 if it comes soon.
    #[inline(never)]
    pub(super) fn follow(&self, own: Own<'_>, before: u64, lane: Lane) -> Result<Writing, NotInside> {
        let node = own.id;
        let stay = |entry| Err(not_inside(node, entry));
        let next = match self.decode("tail", before) {
            Ok(Some(before)) => self.met(before, NodeWord::Next).ok(),
            _ => None,
        };
        own.keep();
        let Some(next) = next else { return stay(WriteEntry::Tail(Posting::Over(Ok(before)))) };
        match self.atomic_now(next, Amo::Swap(node.bits())) {
            Ok(NodeId::PASSED) => return stay(WriteEntry::First),
            Ok(_) => {}
            Err(None) => return stay(WriteEntry::Tail(Posting::Over(Ok(before)))),
            Err(Some(posting)) => return stay(WriteEntry::Link(*posting)),
        }
        if self.is_soon_woken(node) && self.publish_in(lane, Transition::writer_goes_on(node)).is_ok() {
            return Ok(Writing::new(node, true));
        }
        stay(WriteEntry::Linked)
    }

    /// Returns whether a writer has linked itself behind this rank's node, or is about to.
    #[inline(always)]
    pub(super) fn is_followed(&self, node: NodeId) -> bool {
        if !self.is_last(node) {
            return true;
        }
        let tail = self.writers().ok().and_then(|writers| self.fabric.get_word_now(&writers.tail));
        tail.is_some_and(|tail| tail != node.bits()) && self.is_soon_followed(node)
    }

    /// Hands over to the successor, which has linked itself behind `held`'s node. For schemes that hand
    /// over.
    #[inline(never)]
    pub(super) fn hand_over(&self, held: Writing, lane: Lane) -> Result<(), NotOut> {
        let node = held.node();
        let step = Transition::writer_goes_on(node);
        let Ok(next) = self.own(node.slot(), NodeWord::Next) else { return Err(None) };
        let Ok(next) = self.fabric.load(next) else { return Err(None) };
        let Ok(Some(successor)) = self.decode("next", next) else { return Err(None) };
        let Ok(wake) = self.met(successor, NodeWord::Wake) else { return Err(None) };
        match pass_on_to::<S>(node, next) {
            Some(amo) => match self.announced_now(lane, step, &self.count, amo) {
                Ok(old) if old == S::active(node.bits()) => {}
                Ok(old) => return Err(not_out(WriteExit::HandOver(Some(Posting::Over(Ok(old))), next))),
                Err(None) => return Err(None),
                Err(Some(posting)) => return Err(not_out(WriteExit::HandOver(Some(*posting), next))),
            },
            None if self.publish_in(lane, step).is_ok() => {}
            None => return Err(None),
        }
        let waking = Waking(successor);
        match self.atomic_now(wake, waking.to(Wait::Granted)) {
            Ok(old) if waking.found_it(old) => {}
            // Woken once more, it is found again to have given up.
            Ok(_) | Err(None) => return Err(not_out(WriteExit::HandOver(None, next))),
            Err(Some(posting)) => return Err(not_out(WriteExit::Woken(next, *posting))),
        }
        self.tidy(node, lane)
    }

    /// Gives back the node of a writer that is out of the queue, where nobody else knows it any more.
    #[inline(always)]
    pub(super) fn tidy(&self, node: NodeId, lane: Lane) -> Result<(), NotOut> {
        if self.renew(node).is_err() || self.publish_in(lane, Transition::writer_goes_back(node, 3)).is_err() {
            return Err(not_out(WriteExit::Gone));
        }
        self.adopt(node).give_back_fresh();
        Ok(())
    }
}
