//! The loss of ranks, as the world sees it: who has died, who knows, and what becomes of operations.
//!
//! A rank that dies does nothing more. What it had posted is still on its way, and its memory is still there. Each other rank learns
//! of it at a moment of its own; from the first such moment on nothing of the dead rank's happens any more (E4), and for
//! the one that has learned nothing happens in the dead rank's memory (E2).

use crate::{
    act::NO_SLOT,
    automaton::LocalId,
    mix::Mix,
    state::{ALL, At, Item, Kind, Phase, State},
};
use rdma_fabric::Rank;

/// Where a dead rank is: where it was does not matter.
const GONE: LocalId = LocalId::MAX;

/// Ranks by bits, of which there are [`crate::schedule::MOST_RANKS`].
pub(crate) type Ranks = u32;

pub(crate) fn bit(rank: Rank) -> Ranks {
    1 << rank.number()
}

/// The first of `ranks`.
pub(crate) fn first(ranks: Ranks) -> Option<Rank> {
    (ranks != 0).then(|| Rank::new(ranks.trailing_zeros()))
}

/// What one rank has heard.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Heard {
    /// The losses it knows of.
    lost: Ranks,
    /// Those to whom a put of its own failed that no flush has told of (O13).
    owed: Ranks,
}

/// All that is known of deaths.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Losses {
    dead: Ranks,
    /// Mortal ranks that have ended before they died: they never will.
    ended: Ranks,
    /// By rank; shorter where nobody has heard of anything.
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

    /// The losses that `by` knows of.
    pub(crate) fn known_to(&self, by: Rank) -> Ranks {
        self.heard.get(by.index()).map_or(0, |heard| heard.lost)
    }

    /// Whether `by` may learn of the loss of `lost`.
    pub(crate) fn may_learn(&self, by: Rank, lost: Rank) -> bool {
        by != lost && self.is_dead(lost) && !self.is_dead(by) && self.known_to(by) & bit(lost) == 0
    }

    /// The first rank that a flush of all has to tell `by` of.
    pub(crate) fn owed_to(&self, by: Rank) -> Option<Rank> {
        first(self.heard.get(by.index()).map_or(0, |heard| heard.owed))
    }

    /// A flush of all has told.
    pub(crate) fn paid(&mut self, by: Rank) {
        if let Some(heard) = self.heard.get_mut(by.index()) {
            heard.owed = 0;
        }
    }

    pub(crate) fn mix(&self, mix: &mut Mix) {
        if self.dead | self.ended != 0 {
            mix.add(u64::from(self.dead) | u64::from(self.ended) << 32);
            for heard in &self.heard {
                mix.add(u64::from(heard.lost) | u64::from(heard.owed) << 32);
            }
        }
    }

    /// Keeps its allocation.
    pub(crate) fn assign(&mut self, from: &Self) {
        (self.dead, self.ended) = (from.dead, from.ended);
        self.heard.clone_from(&from.heard);
    }
}

impl Item {
    /// It will not happen, and the handle that waits for it is to say so.
    fn lost(&mut self) {
        self.happened(0);
        self.kind = Kind::Lost;
    }
}

impl State {
    /// `rank` does nothing more. Nobody holds its handles, and nobody takes its notices.
    pub(crate) fn die(&mut self, rank: Rank) {
        self.items.iter_mut().filter(|item| item.by == rank).for_each(|item| {
            item.slot = NO_SLOT;
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

    /// `by` learns that `lost` has died. What `by` has under way there fails, unless its handle knows better; it may have taken effect
    /// before.
    pub(crate) fn learn(&mut self, by: Rank, lost: Rank) {
        self.vanish(lost);
        let mut owed = false;
        self.items.retain_mut(|item| {
            if item.by != by || item.target != lost || item.phase == Phase::Complete {
                return true;
            }
            owed |= item.is_put() || item.kind == Kind::Notice;
            if item.slot != NO_SLOT {
                item.lost();
            }
            item.slot != NO_SLOT
        });
        let heard = &mut self.losses.heard[by.index()];
        heard.lost |= bit(lost);
        heard.owed |= if owed { bit(lost) } else { 0 };
    }

    /// Nothing of what `lost` had on its way happens any more.
    pub(crate) fn vanish(&mut self, lost: Rank) {
        self.items.retain(|item| item.by != lost);
    }

    /// Whether `item` is a flush of all targets.
    pub(crate) fn flushes_all(item: &Item) -> bool {
        item.kind == Kind::Flush && item.target == ALL
    }
}
