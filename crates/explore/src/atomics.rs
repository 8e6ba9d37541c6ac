//! Atomics that are atomic against each other only: where [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not promised.
//!
//! Such an atomic reads its word at one moment and writes it at a later one. No other atomic on the word comes between; a put or its
//! owner's store may, and is lost. As an atomic that reads earlier than it must is of interest only if something is lost by that, it
//! reads where such a write could come next, and else when it writes.

use crate::{
    cell::Part,
    state::{Kind, State},
    world::{Halt, World},
};
use rdma_fabric::{Amo, Rank};

fn overlap(one: Part, other: Part) -> bool {
    one.cell == other.cell && one.mask & other.mask != 0
}

impl State {
    /// Whether an atomic on this word has read it and not written it yet.
    pub(crate) fn is_held(&self, word: Part) -> bool {
        self.items.iter().any(|item| item.kind == Kind::Begun && overlap(item.at, word))
    }

    /// Whether the network is about to write this word.
    pub(crate) fn is_arriving(&self, word: Part) -> bool {
        self.items.iter().any(|item| match item.kind {
            Kind::Put => overlap(item.at, word),
            Kind::Landing => overlap(item.own, word),
            _ => false,
        })
    }

    /// The atomic at `place` reads its word.
    pub(crate) fn begin(&mut self, place: usize) {
        let at = self.items[place].at;
        let old = at.get(self.read(at));
        let item = &mut self.items[place];
        (item.kind, item.bits) = (Kind::Begun, old);
    }

    /// The atomic at `place` writes its word. A comparison that failed writes nothing.
    pub(crate) fn finish(&mut self, place: usize) {
        let item = self.items[place];
        let fails = matches!(item.rmw.amo(), Amo::CompareSwap { expected, .. } if expected != item.bits);
        if !fails {
            self.write(item.at, item.at.place(item.rmw.apply(item.bits)));
        }
    }
}

impl World<'_> {
    /// Whether it is of interest that the atomic at `place`, which may happen, reads now and writes later.
    pub(crate) fn may_begin(&mut self, state: &State, place: usize) -> Result<bool, Halt> {
        let item = &state.items[place];
        if self.coherent || item.kind != Kind::Atomic || state.too_late(place).is_some() {
            return Ok(false);
        }
        if !self.reduced || state.is_arriving(item.at) {
            return Ok(true);
        }
        let stored = self.automaton.job.cells.borrow().is_stored(item.at.cell);
        Ok(stored && self.may_store_next(state, item.target, item.at)?)
    }

    /// Whether the next act of `rank` may be a store to `word`.
    fn may_store_next(&mut self, state: &State, rank: Rank, word: Part) -> Result<bool, Halt> {
        if state.losses.is_dead(rank) {
            return Ok(false);
        }
        let tasks = self.automaton.local(state.ranks[rank.index()].local).choices();
        let tasks = (0..64).filter(|task| tasks.is_some_and(|tasks| tasks >> task & 1 == 1)).map(Some);
        let tasks: Vec<_> = if tasks.clone().next().is_some() { tasks.collect() } else { vec![None] };
        for task in tasks {
            let outlook = self.outlook(state, rank.number() as u8, task)?;
            if outlook.stores.is_some_and(|part| overlap(part, word)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
