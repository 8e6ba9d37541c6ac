//! Getting in and out as far as that needs no wait: without a box, where operations complete when
//! posted.

use super::{
    Class, Core, FairGuard, FairLock, READER,
    guard::Held,
    link::{SAY_INSIDE, Said},
    release::was_waited_for,
};
use crate::{
    Result,
    in_place::{Attempt, FastPath, Never, Posting},
    locks::Mode,
    queue::{NodeId, NodeWord},
};
use core::{marker::PhantomData, mem, task::Context};
use rdma_fabric::{Amo, Handle};

/// The state of an acquisition that is not complete yet.
pub(super) enum FairEntry {
    /// F1, or a try's compare-and-swap in its place, was posted.
    Tail(Posting),
    /// Nobody is ahead of it in the queue.
    First,
    /// A reader with nobody ahead of it: F3 was posted.
    Count(Posting),
    /// The reader is counted.
    Counted,
    /// The reader is counted, and F7 was posted.
    Inside(Posting),
    /// A writer with nobody ahead of it: F4 was posted.
    Look(Handle<[u64; 1]>),
    /// What F4 found.
    Looked(u64),
}

/// An acquisition whose node is taken and whose F1 was posted; `None` if nothing has happened yet.
pub(super) type NotInside = Option<Box<(NodeId, FairEntry)>>;

#[cold]
#[inline(never)]
fn not_inside(node: NodeId, entry: FairEntry) -> NotInside {
    Some(Box::new((node, entry)))
}

/// The state of a release that is not complete yet.
pub(super) enum FairExit {
    /// G1's compare-and-swap of the tail was posted.
    Tail(Posting),
    /// The node was the queue's last and is out of it.
    Last,
    /// The node was the queue's last and is out of it, and a reader's G3 was posted.
    Uncount(Posting),
}

/// A release whose G1 was posted; `None` if nothing has happened yet.
pub(super) type NotOut = Option<Box<FairExit>>;

#[cold]
#[inline(never)]
fn not_out(exit: FairExit) -> NotOut {
    Some(Box::new(exit))
}

/// F1 by the given atomic, then F2–F7, for a `Held` that is a guard or may be one.
pub(super) struct Enter<'a, First, Held>(
    pub(super) &'a FairLock,
    pub(super) First,
    pub(super) PhantomData<fn() -> Held>,
);

impl<'a, M: Mode, First, Held> FastPath for Enter<'a, First, (M, Held)>
where
    First: Fn(NodeId) -> Amo<u64>,
    Held: From<FairGuard<'a, M>>,
{
    type Out = Result<Held>;
    type Posted = Never<Self>;
    type Stage = NotInside;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Attempt<Self> {
        match self.0.core.start(Class::of::<M>(), self.1) {
            Ok(held) => Attempt::Done(Ok(FairGuard::new(self.0, held).into())),
            Err(entry) => Attempt::NotDone(entry),
        }
    }
}

/// The guard is still armed if G1 was not posted.
pub(super) struct Leave<'a, M: Mode>(pub(super) FairGuard<'a, M>);

impl<'a, M: Mode> FastPath for Leave<'a, M> {
    type Out = Result<()>;
    type Posted = Never<Self>;
    type Stage = (FairGuard<'a, M>, NotOut);

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Attempt<Self> {
        match self.0.core().leave(self.0.held()) {
            Ok(()) => {
                mem::forget(self.0);
                Attempt::Done(Ok(()))
            }
            Err(exit) => Attempt::NotDone((self.0, exit)),
        }
    }
}

/// F1.
pub(super) fn queue_up(node: NodeId) -> Amo<u64> {
    Amo::Swap(node.bits())
}

/// In place of F1: queues up if the queue is empty; for a reader this is the first of two attempts,
/// and the second is behind a reader inside.
pub(super) fn if_empty(node: NodeId) -> Amo<u64> {
    Amo::CompareSwap { expected: 0, new: node.bits() }
}

impl Core {
    /// F1–F7. Returns the hold if that leads inside.
    #[inline(always)]
    fn start(&self, class: Class, first: impl Fn(NodeId) -> Amo<u64>) -> Result<Held, NotInside> {
        if !self.is_fast() || !self.broken.is_whole() {
            return Err(None);
        }
        let lane = self.published.lane();
        let Some(own) = self.take_fresh_node(lane) else { return Err(None) };
        let node = own.id;
        // F1
        match self.announced_now(lane, class.arrives(node), &self.tail, first(node)) {
            Ok(0) => {}
            Ok(before) => return Err(not_inside(own.keep(), FairEntry::Tail(Posting::Over(Ok(before))))),
            Err(None) => {
                own.give_back_fresh();
                return Err(None);
            }
            Err(Some(posting)) => return Err(not_inside(own.keep(), FairEntry::Tail(*posting))),
        }
        let entered = match class {
            Class::Reader => self.count_now(node),
            Class::Writer => self.look_now(),
        };
        if let Err(entry) = entered {
            return Err(not_inside(own.keep(), *entry));
        }
        if self.publish_in(lane, class.enters(node)).is_err() {
            let entry = match class {
                Class::Reader => FairEntry::Inside(Posting::Over(Ok(0))),
                Class::Writer => FairEntry::Looked(0),
            };
            return Err(not_inside(own.keep(), entry));
        }
        Ok(Held { node: own.keep(), class, woken: false })
    }

    /// F3, and F7 with nobody behind.
    #[inline(always)]
    fn count_now(&self, node: NodeId) -> Result<(), Box<FairEntry>> {
        match self.atomic_now(&self.state, Amo::Add(READER)) {
            Ok(_) => {}
            Err(None) => return Err(Box::new(FairEntry::First)),
            Err(Some(posting)) => return Err(Box::new(FairEntry::Count(*posting))),
        }
        let Ok(next) = self.own(node.slot(), NodeWord::Next) else { return Err(Box::new(FairEntry::Counted)) };
        match self.atomic_now(&next.as_remote(), SAY_INSIDE) {
            Ok(0) => Ok(()),
            Ok(link) => Err(Box::new(FairEntry::Inside(Posting::Over(Ok(link))))),
            Err(None) => Err(Box::new(FairEntry::Counted)),
            Err(Some(posting)) => Err(Box::new(FairEntry::Inside(*posting))),
        }
    }

    /// F4, with no reader inside.
    #[inline(always)]
    fn look_now(&self) -> Result<(), Box<FairEntry>> {
        match self.fabric.get_word_now(&self.state) {
            Some(0) => Ok(()),
            Some(readers) => Err(Box::new(FairEntry::Looked(readers))),
            None => self.look_slowly(),
        }
    }

    /// F4, with no reader inside, where it needs a handle.
    #[inline(never)]
    fn look_slowly(&self) -> Result<(), Box<FairEntry>> {
        let Ok(mut look) = self.fabric.try_get(&self.state.as_span(), [0]) else {
            return Err(Box::new(FairEntry::First));
        };
        if !look.test() {
            return Err(Box::new(FairEntry::Look(look)));
        }
        match look.wait() {
            Ok([0]) => Ok(()),
            Ok([readers]) => Err(Box::new(FairEntry::Looked(readers))),
            // The get has changed nothing, and fails again when repeated.
            Err(_) => Err(Box::new(FairEntry::First)),
        }
    }

    /// G1 as the queue's last, and G3 with nobody to wake.
    #[inline(always)]
    pub(super) fn leave(&self, held: Held) -> Result<(), NotOut> {
        let Held { node, class, woken } = held;
        let said = class.said();
        // A node that was woken begins another turn.
        if !self.is_fast() || woken || !self.is_last(node, said) {
            return Err(None);
        }
        let lane = self.published.lane();
        match self.announced_now(
            lane,
            class.leaves(node),
            &self.tail,
            Amo::CompareSwap { expected: node.bits(), new: 0 },
        ) {
            Ok(tail) if tail == node.bits() => {}
            Ok(tail) => return Err(not_out(FairExit::Tail(Posting::Over(Ok(tail))))),
            Err(None) => return Err(None),
            Err(Some(posting)) => return Err(not_out(FairExit::Tail(*posting))),
        }
        let old = match class {
            Class::Reader => self.uncount_now(node)?,
            Class::Writer => 0,
        };
        if self.publish_in(lane, class.is_gone(node)).is_err() {
            return Err(not_out(FairExit::Uncount(Posting::Over(Ok(old)))));
        }
        self.adopt(node).give_back_fresh();
        Ok(())
    }

    /// G3 with nobody to wake; this rank's node was the queue's last.
    #[inline(always)]
    fn uncount_now(&self, node: NodeId) -> Result<u64, NotOut> {
        if self.unsay(node, Said::Inside).is_err() {
            return Err(not_out(FairExit::Last));
        }
        match self.atomic_now(&self.state, Amo::Add(READER.wrapping_neg())) {
            Ok(old) if !was_waited_for(old.wrapping_sub(READER)) => Ok(old),
            Ok(old) => Err(not_out(FairExit::Uncount(Posting::Over(Ok(old))))),
            Err(None) => Err(not_out(FairExit::Last)),
            Err(Some(posting)) => Err(not_out(FairExit::Uncount(*posting))),
        }
    }
}
