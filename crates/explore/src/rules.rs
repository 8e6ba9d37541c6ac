//! The possible events of operations in flight: the freedom that the contract gives, and its
//! limits.

use crate::{
    acknowledged::Execution,
    act::{Act, Answer, HandleId, NO_HANDLE},
    cell::CellPart,
    loss::bit,
    state::{Item, ItemKind, Phase, State},
};
use rdma_fabric::{PutOrder, Rank};

impl State {
    /// Returns whether the item at `place` has a possible event now.
    pub(crate) fn may_happen(&self, place: usize, order: PutOrder) -> bool {
        let item = &self.items[place];
        match item.kind {
            ItemKind::Atomic if self.is_held(item.at) => false,
            ItemKind::Atomic => match order {
                PutOrder::None => true,
                PutOrder::SameTarget => self.flushed(item.by, item.target, place),
                PutOrder::AllTargets => self.flushed(item.by, crate::state::ALL, place),
            },
            ItemKind::Get | ItemKind::GetInto => !self.awaits_own_atomic(item.by, item.at),
            ItemKind::Begun | ItemKind::Landing | ItemKind::PutFrom => true,
            // The write of its word completes it.
            ItemKind::Executed => false,
            ItemKind::Put => self.is_its_turn(place) && !self.awaits_own_atomic(item.by, item.at),
            ItemKind::Notice => self.notice_may_arrive(place),
            ItemKind::Flush => item.phase == Phase::Posted && self.has_flushed(place),
            // The first piece represents all of its operation.
            ItemKind::Complete | ItemKind::Lost | ItemKind::Stale => {
                item.phase == Phase::Happened && self.is_first(place) && self.happened(item.by, item.slot)
            }
        }
    }

    /// Returns whether the item's only remaining event is the notification of its poster's handle.
    pub(crate) fn only_reports(&self, place: usize) -> bool {
        matches!(self.items[place].kind, ItemKind::Flush | ItemKind::Complete | ItemKind::Lost | ItemKind::Stale)
    }

    /// Returns whether a notice may arrive: after its own bytes, and after notices posted earlier
    /// to the same target.
    fn notice_may_arrive(&self, place: usize) -> bool {
        let (by, target) = (self.items[place].by, self.items[place].target);
        let before = || self.items[..place].iter().rev().filter(|item| item.by == by);
        let bytes = before().take_while(|item| item.kind != ItemKind::Notice).any(|item| item.tied && item.is_put());
        let earlier = before().any(|item| item.kind == ItemKind::Notice && item.target == target);
        !bytes && !earlier
    }

    fn is_first(&self, place: usize) -> bool {
        let (by, slot) = (self.items[place].by, self.items[place].slot);
        !self.items[..place].iter().any(|item| item.by == by && item.slot == slot)
    }

    /// Returns whether all of an operation has happened.
    fn happened(&self, by: Rank, slot: HandleId) -> bool {
        self.items.iter().enumerate().filter(|(_, item)| item.by == by && item.slot == slot).all(|(place, item)| {
            item.phase >= Phase::Happened || item.kind == ItemKind::Flush && self.has_flushed(place)
        })
    }

    /// Returns whether everything that the flush at `place` waits for has arrived.
    fn has_flushed(&self, place: usize) -> bool {
        let flush = &self.items[place];
        self.flushed(flush.by, flush.target, place) && self.has_written(flush.by, flush.target)
    }

    /// Lets the item at `place` take effect, an atomic by `execution`.
    pub(crate) fn happen(&mut self, place: usize, execution: Execution) {
        if let Some(holding) = self.too_late(place) {
            return self.comes_too_late(place, holding);
        }
        let item = self.items[place];
        let heard = item.slot != NO_HANDLE;
        match item.kind {
            ItemKind::Atomic => match execution {
                Execution::Interface(unread) => self.execute(place, unread),
                Execution::Memory => {
                    let old = self.change(item.at, item.amo());
                    self.over(place, old);
                }
            },
            ItemKind::Begun => {
                self.finish(place);
                self.over(place, item.bits);
            }
            ItemKind::Get => {
                let bits = self.read(item.at);
                self.over(place, bits);
            }
            ItemKind::GetInto => {
                let bits = self.read(item.at) >> item.at.mask.trailing_zeros() << item.own.mask.trailing_zeros();
                let item = &mut self.items[place];
                (item.kind, item.bits, item.at) = (ItemKind::Landing, bits, CellPart::default());
            }
            ItemKind::Landing => {
                self.write(item.own, item.bits);
                self.over(place, 0);
            }
            ItemKind::PutFrom => {
                let bits = self.read(item.own) >> item.own.mask.trailing_zeros() << item.at.mask.trailing_zeros();
                // From now on the bytes are in flight, and the poster may be notified that they
                // have been read; the two events are independent.
                let put = Item { kind: ItemKind::Put, slot: NO_HANDLE, bits, own: CellPart::default(), ..item };
                if heard {
                    self.over(place, 0);
                    self.items.insert(place, put);
                } else {
                    self.items[place] = put;
                }
            }
            ItemKind::Put => {
                self.write(item.at, item.bits);
                self.items.remove(place);
                self.take_turns(item.by, item.target);
            }
            ItemKind::Notice => {
                if !self.losses.is_dead(item.target) {
                    self.notices.push((item.target, item.notice()));
                }
                self.items.remove(place);
            }
            ItemKind::Executed => {}
            ItemKind::Flush | ItemKind::Complete | ItemKind::Lost | ItemKind::Stale => {
                for piece in &mut self.items {
                    if piece.by == item.by && piece.slot == item.slot {
                        piece.phase = Phase::Complete;
                    }
                }
            }
        }
    }

    pub(crate) fn over(&mut self, place: usize, bits: u64) {
        if self.items[place].slot == NO_HANDLE {
            self.items.remove(place);
        } else {
            self.items[place].happened(bits);
        }
    }

    /// Returns the answer to a rank that asks for an operation's result. `at_once` means that it is
    /// complete as soon as it has happened.
    pub(crate) fn result(&self, by: Rank, slot: HandleId, at_once: bool) -> Answer {
        let mut pieces = self.items.iter().filter(|item| item.by == by && item.slot == slot);
        let complete =
            if at_once { self.happened(by, slot) } else { pieces.clone().all(|item| item.phase == Phase::Complete) };
        if !complete {
            return Answer::Pending;
        }
        if let Some(lost) = pieces.clone().find(|item| item.kind == ItemKind::Lost) {
            return Answer::Lost(lost.target);
        }
        if let Some(lost) = self.losses.unreported_to(by)
            && pieces.clone().any(State::flushes_all)
        {
            return Answer::Lost(lost);
        }
        if let Some(stale) = self.stale(by, pieces.clone()) {
            return stale;
        }
        match (pieces.next(), pieces.next()) {
            (Some(only), None) => Answer::Value(only.bits),
            _ => Answer::Words(self.items.iter().filter(|i| i.by == by && i.slot == slot).map(|i| i.bits).collect()),
        }
    }

    /// Frees a slot: its result was taken, or its handle dropped.
    pub(crate) fn release(&mut self, by: Rank, slot: HandleId) {
        for item in &mut self.items {
            if item.by == by && item.slot == slot {
                item.slot = NO_HANDLE;
                item.phase = Phase::Posted;
            }
        }
        self.forget_the_unheard();
    }

    /// Removes items that can have no further effect because their handles have been dropped.
    pub(crate) fn forget_the_unheard(&mut self) {
        let silent = |item: &Item| {
            matches!(
                item.kind,
                ItemKind::Executed
                    | ItemKind::Complete
                    | ItemKind::Get
                    | ItemKind::Flush
                    | ItemKind::Lost
                    | ItemKind::Stale
            )
        };
        self.items.retain(|item| item.slot != NO_HANDLE || !silent(item));
    }

    pub(crate) fn notice_for(&self, rank: Rank) -> Answer {
        let first = self.notices.iter().find(|(target, _)| *target == rank);
        first.map_or(Answer::Pending, |(_, notice)| Answer::Notice(*notice))
    }

    /// Executes a notification of a rank.
    pub(crate) fn report(&mut self, rank: Rank, act: &Act) {
        match act {
            Act::Post(op) => self.post(rank, op),
            Act::Forget(slot) => self.release(rank, *slot),
            Act::Drop(holding) => self.drop_region(*holding),
            _ => {}
        }
    }

    /// Executes a question of a rank, and returns the answer. `at_once`: operations that have
    /// happened are complete.
    pub(crate) fn request(&mut self, rank: Rank, act: &Act, at_once: bool) -> Answer {
        match act {
            Act::Load(part) | Act::Watch(part) => Answer::Value(self.read(*part)),
            Act::Store(part, bits) => {
                self.write(*part, *bits);
                Answer::Done
            }
            Act::Fact(part, amo) => Answer::Value(self.change(*part, *amo)),
            Act::Await(slot) => self.result(rank, *slot, at_once),
            Act::Test(slot) => Answer::Value(u64::from(self.result(rank, *slot, at_once) != Answer::Pending)),
            Act::TryNotice | Act::NextNotice => self.notice_for(rank),
            Act::Now => Answer::Value(self.ranks[rank.index()].clock),
            Act::Sleep(until) => {
                if self.ranks[rank.index()].clock >= *until {
                    Answer::Done
                } else {
                    Answer::Pending
                }
            }
            Act::Detach => Answer::Task(0),
            Act::Drop(holding) => {
                self.drop_region(*holding);
                Answer::Done
            }
            Act::IsDropped(holding) => Answer::Value(u64::from(self.drops.contains(*holding))),
            Act::IsLost(other) => Answer::Value(u64::from(self.losses.known_to(rank) & bit(*other) != 0)),
            Act::LostAmong(ranks) => Answer::Value(u64::from(self.losses.known_to(rank) & ranks)),
            _ => Answer::Done,
        }
    }

    /// Applies an answer's consequences to the world.
    pub(crate) fn answered(&mut self, rank: Rank, act: &Act, answer: &Answer) {
        match (act, answer) {
            (_, Answer::Pending) => {}
            (Act::Await(slot), _) => {
                if matches!(answer, Answer::Lost(_))
                    && self.items.iter().any(|i| i.by == rank && i.slot == *slot && State::flushes_all(i))
                {
                    self.losses.paid(rank);
                }
                let flush = self.items.iter().find(|i| i.by == rank && i.slot == *slot && i.kind == ItemKind::Flush);
                if let (Answer::Lost(_) | Answer::Stale(_), Some(Item { target, .. })) = (answer, flush) {
                    self.drops.paid(rank, *target);
                }
                self.release(rank, *slot);
            }
            (Act::TryNotice | Act::NextNotice, Answer::Notice(_)) => {
                if let Some(place) = self.notices.iter().position(|(target, _)| *target == rank) {
                    self.notices.remove(place);
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn overlap(one: CellPart, other: CellPart) -> bool {
    one.cell == other.cell && one.mask & other.mask != 0
}
