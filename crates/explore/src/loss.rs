//! The loss of ranks: which have died, which know of it, the consequences for operations, and when
//! deaths happen.
//!
//! A rank that dies performs no further acts. Its posted operations are still in flight, and its
//! memory still exists. Each other rank learns of the death independently, at any moment. From the
//! first such moment on, no operation of the dead rank takes effect any longer (E4), and for a rank
//! that has learned of the death, nothing happens in the dead rank's memory (E2).

use crate::{
    act::{Act, NO_HANDLE},
    automaton::LocalId,
    mix::Mix,
    state::{ALL, At, Item, ItemKind, Phase, State},
    world::{Halt, Move, World},
};
use rdma_fabric::Rank;

/// The local state of every dead rank: its previous state does not matter.
const GONE: LocalId = LocalId::MAX;

/// A set of ranks: a bit mask of [`crate::schedule::MOST_RANKS`] bits.
pub(crate) type Ranks = u32;

pub(crate) fn bit(rank: Rank) -> Ranks {
    1 << rank.number()
}

/// Returns the first of `ranks`.
pub(crate) fn first(ranks: Ranks) -> Option<Rank> {
    (ranks != 0).then(|| Rank::new(ranks.trailing_zeros()))
}

/// One rank's knowledge of losses.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Heard {
    /// The losses it knows of.
    lost: Ranks,
    /// Ranks to which a put of its own failed that no flush has reported yet (O13).
    unreported: Ranks,
}

/// The deaths, and the ranks' knowledge of them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Losses {
    dead: Ranks,
    /// Mortal ranks that have ended alive: they will never die.
    ended: Ranks,
    /// Each rank's knowledge; the list may be shorter if the remaining ranks know of no loss.
    heard: Vec<Heard>,
}

impl Losses {
    pub(crate) fn is_dead(&self, rank: Rank) -> bool {
        self.dead & bit(rank) != 0
    }

    pub(crate) fn has_ended(&self, rank: Rank) -> bool {
        self.ended & bit(rank) != 0
    }

    pub(crate) fn end(&mut self, rank: Rank) {
        self.ended |= bit(rank);
    }

    /// Returns the losses that `by` knows of.
    pub(crate) fn known_to(&self, by: Rank) -> Ranks {
        self.heard.get(by.index()).map_or(0, |heard| heard.lost)
    }

    /// Returns whether `by` may learn of the loss of `lost`.
    pub(crate) fn may_learn(&self, by: Rank, lost: Rank) -> bool {
        by != lost && self.is_dead(lost) && !self.is_dead(by) && self.known_to(by) & bit(lost) == 0
    }

    /// Returns the first rank whose loss a flush of all targets has to report to `by`.
    pub(crate) fn unreported_to(&self, by: Rank) -> Option<Rank> {
        first(self.heard.get(by.index()).map_or(0, |heard| heard.unreported))
    }

    /// Records that a flush of all targets has reported.
    pub(crate) fn paid(&mut self, by: Rank) {
        if let Some(heard) = self.heard.get_mut(by.index()) {
            heard.unreported = 0;
        }
    }

    pub(crate) fn mix(&self, mix: &mut Mix) {
        if self.dead | self.ended != 0 {
            mix.add(u64::from(self.dead) | u64::from(self.ended) << 32);
            for heard in &self.heard {
                mix.add(u64::from(heard.lost) | u64::from(heard.unreported) << 32);
            }
        }
    }

    /// Assigns from another value, keeping the allocation.
    pub(crate) fn assign(&mut self, from: &Self) {
        (self.dead, self.ended) = (from.dead, from.ended);
        self.heard.clone_from(&from.heard);
    }
}

impl Item {
    /// Marks the item as one that will never take effect; the handle that waits for it has to
    /// report this.
    fn lost(&mut self) {
        self.happened(0);
        self.kind = ItemKind::Lost;
    }
}

impl State {
    /// Lets `rank` die. Its handles are released, and notices to it are discarded.
    pub(crate) fn die(&mut self, rank: Rank) {
        self.items.iter_mut().filter(|item| item.by == rank).for_each(|item| {
            item.slot = NO_HANDLE;
            item.phase = Phase::Posted;
        });
        self.forget_the_unheard();
        self.notices.retain(|(target, _)| *target != rank);
        self.drops.paid(rank, ALL);
        self.ranks[rank.index()] = At { local: GONE, clock: 0 };
        self.losses.dead |= bit(rank);
        self.losses.heard.resize(self.ranks.len(), Heard::default());
        self.losses.heard[rank.index()] = Heard::default();
    }

    /// Lets `by` learn that `lost` has died. Operations that `by` has in flight there fail, unless
    /// their handles have already reported success; they may have taken effect before.
    pub(crate) fn learn(&mut self, by: Rank, lost: Rank) {
        self.vanish(lost);
        let mut unreported = false;
        self.items.retain_mut(|item| {
            if item.by != by || item.target != lost || item.phase == Phase::Complete {
                return true;
            }
            unreported |= item.is_put() || item.kind == ItemKind::Notice;
            if item.slot != NO_HANDLE {
                item.lost();
            }
            item.slot != NO_HANDLE
        });
        let heard = &mut self.losses.heard[by.index()];
        heard.lost |= bit(lost);
        heard.unreported |= if unreported { bit(lost) } else { 0 };
    }

    /// Discards everything that `lost` had in flight.
    pub(crate) fn vanish(&mut self, lost: Rank) {
        self.items.retain(|item| item.by != lost);
    }

    /// Returns whether `item` is a flush of all targets.
    pub(crate) fn flushes_all(item: &Item) -> bool {
        item.kind == ItemKind::Flush && item.target == ALL
    }
}

impl World<'_> {
    /// Collects the deaths that may happen, and the ranks that may learn of deaths.
    pub(crate) fn losses(&self, state: &State, into: &mut Vec<Move>) {
        let ranks = || (0..state.ranks.len() as u32).map(Rank::new);
        let number = |rank: Rank| rank.number() as u8;
        for rank in ranks().filter(|rank| self.automaton.job.mortal & bit(*rank) != 0) {
            if !state.losses.is_dead(rank) {
                if !state.losses.has_ended(rank) {
                    into.push(Move::Die(number(rank)));
                }
                continue;
            }
            // A rank that has ended makes no further queries.
            let goes_on = |other: &Rank| !state.losses.is_dead(*other) && !self.has_ended(state, *other);
            let record_loss = ranks().filter(|other| goes_on(other) && state.losses.may_learn(*other, rank));
            into.extend(record_loss.map(|other| Move::Learn(number(other), number(rank))));
            if !ranks().any(|other| goes_on(&other)) && state.items.iter().any(|item| item.by == rank) {
                into.push(Move::Vanish(number(rank)));
            }
        }
    }

    pub(crate) fn lose(&mut self, state: &mut State, which: Move) -> Result<(), Halt> {
        let never = |what: &str| Err(Halt::Failure(format!("the schedule {what}")));
        let rank = |number: u8| Rank::new(number.into());
        match which {
            Move::Die(number) => {
                let rank = rank(number);
                let over = state.losses.is_dead(rank) || state.losses.has_ended(rank);
                if over || self.automaton.job.mortal & bit(rank) == 0 {
                    return never(&format!("lets {rank} die, which can't"));
                }
                self.note(|timeline, _| timeline.dies(rank));
                state.die(rank);
                Ok(())
            }
            Move::Learn(by, lost) => {
                let (by, lost) = (rank(by), rank(lost));
                if by.index() >= state.ranks.len() || !state.losses.may_learn(by, lost) {
                    return never(&format!("lets {by} learn of the loss of {lost}, which it can't"));
                }
                self.note(|timeline, _| timeline.record_loss(by, lost));
                state.learn(by, lost);
                self.resume_immediately(state, by)
            }
            Move::Vanish(number) => {
                let rank = rank(number);
                self.note(|timeline, _| timeline.vanishes(rank));
                state.vanish(rank);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn has_ended(&self, state: &State, rank: Rank) -> bool {
        self.automaton.local(state.ranks[rank.index()].local).act == Act::Done
    }

    /// Returns whether a rank that may die has nothing left to do but end; it may still die before
    /// that.
    pub(crate) fn is_about_to_end(&self, state: &State, rank: Rank) -> bool {
        self.automaton.job.mortal & bit(rank) != 0 && !state.losses.has_ended(rank) && self.has_ended(state, rank)
    }

    pub(crate) fn end(&mut self, state: &mut State, rank: Rank) {
        state.losses.end(rank);
        self.note(|timeline, _| timeline.done(rank));
    }

    /// Returns whether a rank that awaits an operation continues as soon as it has happened: it
    /// waits for nothing else, the operation's target can't be lost before the rank is notified,
    /// and no operation in flight to the target can fail.
    pub(crate) fn is_notified_immediately(&mut self, state: &State, rank: Rank, local: LocalId) -> bool {
        if !self.is_sole(local) {
            return false;
        }
        let mortal: Ranks = self.automaton.job.mortal;
        let &Act::Await(slot) = &self.automaton.local(local).act else { return false };
        if self.may_receive_more(state, rank, slot) {
            return false;
        }
        let lasts = |target: Rank| {
            target == rank
                || target == ALL
                || mortal & bit(target) == 0
                || state.losses.has_ended(target)
                || state.losses.known_to(rank) & bit(target) != 0
        };
        mortal == 0 || state.items.iter().filter(|i| i.by == rank && i.slot == slot).all(|i| lasts(i.target))
    }
}
