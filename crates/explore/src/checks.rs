//! Conditions that must hold or must be reachable, and the view of a job on which they are
//! evaluated.

use crate::{
    cell::{Cells, Home},
    cpu,
    state::State,
};
use rdma_fabric::{Rank, RemoteAddr};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

type Check<'a> = Box<dyn Fn(&View<'_>) -> bool + 'a>;

pub(crate) struct Named<'a> {
    name: String,
    check: Check<'a>,
    /// Whether the condition has held in any state so far.
    seen: Cell<bool>,
}

#[derive(Default)]
pub(crate) struct Checks<'a> {
    pub(crate) always: Vec<Named<'a>>,
    pub(crate) at_end: Vec<Named<'a>>,
    pub(crate) possible: Vec<Named<'a>>,
}

pub(crate) fn named<'a>(name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Named<'a> {
    Named { name: name.to_owned(), check: Box::new(check), seen: Cell::new(false) }
}

impl<'a> Checks<'a> {
    /// Checks the conditions for every state.
    pub(crate) fn always(&self, state: &State, cells: &Cells) -> Result<(), String> {
        if self.always.is_empty() && self.possible.is_empty() {
            return Ok(());
        }
        let view = View::new(state, cells);
        for possible in self.possible.iter().filter(|possible| !possible.seen.get()) {
            possible.seen.set((possible.check)(&view));
        }
        all(&self.always, &view)
    }

    /// Checks the conditions for states in which all ranks and operations have ended.
    pub(crate) fn at_end(&self, state: &State, cells: &Cells) -> Result<(), String> {
        all(&self.at_end, &View::new(state, cells))
    }

    pub(crate) fn seen(&self) -> Vec<(String, bool)> {
        self.possible.iter().map(|possible| (possible.name.clone(), possible.seen.get())).collect()
    }
}

fn all(checks: &[Named<'_>], view: &View<'_>) -> Result<(), String> {
    for Named { name, check, .. } in checks {
        match catch_unwind(AssertUnwindSafe(|| cpu::while_exploring(|| check(view)))) {
            Ok(true) => {}
            Ok(false) => return Err(format!("{name}: does not hold")),
            Err(panic) => return Err(format!("{name}: {}", cpu::panic_message(&*panic))),
        }
    }
    Ok(())
}

/// A snapshot of a job, seen from outside.
#[derive(Debug)]
pub struct View<'a> {
    state: &'a State,
    cells: &'a Cells,
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a State, cells: &'a Cells) -> Self {
        View { state, cells }
    }

    /// Returns whether a [mortal](crate::Explorer::mortal) rank has died, whether or not any rank
    /// knows. Its memory and the facts that it set stay as they were.
    pub fn is_lost(&self, rank: Rank) -> bool {
        self.state.losses.is_dead(rank)
    }

    /// Returns the value of a fact; see [`crate::Probe`].
    pub fn fact(&self, fact: u32) -> u64 {
        self.cells.find(Home::Fact(fact)).map_or(0, |cell| self.state.cell(cell))
    }

    /// Returns the 8-byte word at `addr`, whose offset is a multiple of 8, as it is in its owner's
    /// memory. Words that only their owner's CPU ever touches change together with the owner's next
    /// act that is observable by others.
    pub fn word(&self, addr: RemoteAddr) -> u64 {
        self.cells.find(Home::Memory(addr)).map_or(0, |cell| self.state.cell(cell))
    }

    /// Returns all 8-byte words of registered memory that are not zero, in the order of their
    /// addresses. Words of dropped regions have the values they had at the drop.
    pub fn words(&self) -> impl Iterator<Item = (RemoteAddr, u64)> + use<> {
        let all = self.state.cells().iter().enumerate().filter(|(_, bits)| **bits != 0);
        let mut words: Vec<_> = all
            .filter_map(|(cell, bits)| match self.cells.home(cell as u32) {
                Home::Memory(addr) => Some((addr, *bits)),
                Home::Fact(_) => None,
            })
            .collect();
        words.sort_by_key(|(addr, _)| (addr.rank, addr.region.index, addr.offset));
        words.into_iter()
    }
}
