//! Regions that their owners have dropped, and operations that arrive too late for them.
//!
//! Whether a region has been dropped matters to others only if they still address it. As long as no
//! run shows that they do, a drop takes effect immediately, together with its owner's preceding
//! acts, and accesses do not check for it: this is the order in which the most operations arrive
//! too late. As soon as an operation arrives too late in some order, the region is *contested*: its
//! drop becomes a separate move, every access to it asks whether it was dropped, and the
//! exploration starts over.

use crate::{
    act::{Answer, HandleId, NO_HANDLE},
    cell::Cells,
    mix::Mix,
    state::{ALL, Item, ItemKind, State},
    world::{Halt, World},
};
use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr};
use std::collections::BTreeSet;

/// One rank's region: a local region, or the rank's part of a symmetric one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Holding {
    pub(crate) rank: Rank,
    /// The index in the region's key.
    pub(crate) index: u32,
}

impl Holding {
    /// Returns the region that contains `addr`.
    pub(crate) fn of(addr: RemoteAddr) -> Self {
        Holding { rank: addr.rank, index: addr.region.index }
    }

    pub(crate) fn stale(self) -> FabricError {
        let region = RegionKey { index: self.index, generation: Cells::GENERATION };
        FabricError::StaleRegion { rank: self.rank, region }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.rank.number()) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Holding { rank: Rank::new((bits >> 32) as u32), index: bits as u32 }
    }
}

/// The regions found so far that others may address after their drop.
#[derive(Debug, Default)]
pub(crate) struct Contested {
    found: BTreeSet<Holding>,
    /// Whether to treat every region as contested.
    pub(crate) all: bool,
    /// Whether one was found since this flag was last cleared.
    pub(crate) grown: bool,
}

impl Contested {
    pub(crate) fn contains(&self, holding: Holding) -> bool {
        self.all || self.found.contains(&holding)
    }

    pub(crate) fn add(&mut self, holding: Holding) {
        self.grown |= self.found.insert(holding);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Holding> {
        self.found.iter().copied()
    }
}

/// The regions dropped so far, and the posters owed an error for puts that came too late (O13).
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Drops {
    /// The dropped regions, sorted.
    dropped: Vec<Holding>,
    /// For each poster and target, the first region for which a put came too late.
    unreported: Vec<(Rank, Holding)>,
}

impl Drops {
    pub(crate) fn add(&mut self, holding: Holding) {
        if let Err(place) = self.dropped.binary_search(&holding) {
            self.dropped.insert(place, holding);
        }
    }

    pub(crate) fn contains(&self, holding: Holding) -> bool {
        !self.dropped.is_empty() && self.dropped.binary_search(&holding).is_ok()
    }

    /// Returns the region that a flush of `target`, or of all targets, has to report to `by`.
    fn unreported_to(&self, by: Rank, target: Rank) -> Option<Holding> {
        let mut unreported =
            self.unreported.iter().filter(|(to, at)| *to == by && (target == ALL || at.rank == target));
        unreported.next().map(|(_, holding)| *holding)
    }

    /// Records that a flush of `target`, or of all targets, has reported to `by`.
    pub(crate) fn paid(&mut self, by: Rank, target: Rank) {
        self.unreported.retain(|(to, at)| *to != by || target != ALL && at.rank != target);
    }

    fn record_error(&mut self, by: Rank, holding: Holding) {
        if self.unreported_to(by, holding.rank).is_none() {
            let place = self.unreported.partition_point(|known| *known < (by, holding));
            self.unreported.insert(place, (by, holding));
        }
    }

    pub(crate) fn mix(&self, mix: &mut Mix) {
        if !self.dropped.is_empty() {
            mix.add(self.dropped.len() as u64 | (self.unreported.len() as u64) << 32);
            self.dropped.iter().for_each(|holding| mix.add(holding.to_bits()));
            for (by, holding) in &self.unreported {
                mix.add(by.number().into());
                mix.add(holding.to_bits());
            }
        }
    }

    /// Assigns from another value, keeping the allocations.
    pub(crate) fn assign(&mut self, from: &Self) {
        self.dropped.clone_from(&from.dropped);
        self.unreported.clone_from(&from.unreported);
    }
}

impl State {
    /// Returns the dropped region for which the item at `place`, which is about to happen, is too
    /// late.
    pub(crate) fn too_late(&self, place: usize) -> Option<Holding> {
        let item = &self.items[place];
        let holding = match item.kind {
            ItemKind::Atomic | ItemKind::Begun | ItemKind::Get | ItemKind::GetInto | ItemKind::Put => item.there(),
            // A put of no bytes is represented by its notice.
            ItemKind::Notice if !item.tied => item.there(),
            ItemKind::Landing => Holding { rank: item.by, index: item.sink },
            _ => return None,
        };
        self.drops.contains(holding).then_some(holding)
    }

    /// Marks the item at `place` as too late: it changes nothing, and its poster will receive an
    /// error.
    pub(crate) fn comes_too_late(&mut self, place: usize, holding: Holding) {
        let item = self.items[place];
        match item.kind {
            ItemKind::Put | ItemKind::Notice => {
                self.drops.record_error(item.by, holding);
                self.forget_notice(place);
                self.items.remove(place);
                self.take_turns(item.by, item.target);
            }
            _ if item.slot == NO_HANDLE => drop(self.items.remove(place)),
            _ => {
                let item = &mut self.items[place];
                item.happened(holding.to_bits());
                item.kind = ItemKind::Stale;
            }
        }
    }

    /// Discards the notice of the put to which the item at `place` belongs, because not all of the
    /// put's bytes arrive.
    fn forget_notice(&mut self, place: usize) {
        let Item { by, tied: true, kind: ItemKind::Put, .. } = self.items[place] else { return };
        let mine = |item: &Item| item.by == by && item.kind == ItemKind::Notice;
        let Some(notice) = (place..self.items.len()).find(|at| mine(&self.items[*at])) else { return };
        let first = (0..place).rev().find(|at| mine(&self.items[*at])).map_or(0, |before| before + 1);
        self.items[first..notice].iter_mut().filter(|item| item.by == by).for_each(|item| item.tied = false);
        self.items.remove(notice);
    }

    /// Returns the error that a completed operation of `by`, consisting of `pieces`, has to report
    /// because a region was dropped.
    pub(crate) fn stale<'a>(&self, by: Rank, mut pieces: impl Iterator<Item = &'a Item>) -> Option<Answer> {
        pieces.find_map(|item| match item.kind {
            ItemKind::Stale => Some(Answer::Stale(Holding::from_bits(item.bits))),
            ItemKind::Flush => self.drops.unreported_to(by, item.target).map(Answer::Stale),
            _ => None,
        })
    }
}

impl World<'_> {
    /// Makes the drop of `holding` a separate move, and requests that the exploration start over.
    pub(crate) fn contest(&mut self, holding: Holding) -> Halt {
        self.automaton.job.cells.borrow_mut().contested.add(holding);
        Halt::Again
    }

    /// Fails with [`Halt::Again`] if the item at `place` is too late for a region that is not yet
    /// contested.
    pub(crate) fn notice_lateness(&mut self, state: &State, place: usize) -> Result<(), Halt> {
        match state.too_late(place) {
            Some(holding) if !self.automaton.job.cells.borrow().contested.contains(holding) => {
                Err(self.contest(holding))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a flush that could complete now might report an error if it completed later.
    /// A flush waits for the bytes that were put before it, but not for a put without bytes or for
    /// one that a detached future has posted in the meantime.
    pub(crate) fn may_receive_more(&self, state: &State, rank: Rank, slot: HandleId) -> bool {
        let flush =
            state.items.iter().position(|item| item.by == rank && item.slot == slot && item.kind == ItemKind::Flush);
        let Some(place) = flush else { return false };
        let target = state.items[place].target;
        let cells = self.automaton.job.cells.borrow();
        state.items.iter().enumerate().any(|(at, item)| {
            let empty = item.kind == ItemKind::Notice && !item.tied;
            let unawaited = item.by == rank && (empty || at > place && item.is_put());
            unawaited && (target == ALL || item.target == target) && cells.contested.contains(item.there())
        })
    }

    /// Returns whether another rank has just resolved a place in `holding` and could equally have
    /// done so after the drop.
    pub(crate) fn is_being_reached(&self, state: &State, holding: Holding) -> bool {
        let others = (0..state.ranks.len() as u32).map(Rank::new).filter(|rank| *rank != holding.rank);
        others.filter(|rank| !state.losses.is_dead(*rank)).any(|rank| {
            let at = state.ranks[rank.index()].local;
            self.automaton.has_just_reached(at, holding, |act| self.is_noticed(state, rank, act))
        })
    }
}
