//! The memory of all ranks: words and data.

use crate::memory::CellUse;
use loom::{
    cell::Cell as Watched,
    sync::atomic::{
        AtomicU64,
        Ordering::{self, Acquire},
    },
};
use rdma_fabric::{Amo, Rank};
use std::cell::{Cell, OnceCell};

/// The memory cells of all ranks. Until they are [shared](Cells::share), a single thread owns them
/// and loom does not track them.
#[derive(Debug)]
pub(crate) struct Cells {
    quiet: Vec<Vec<Cell<u64>>>,
    shared: OnceCell<Vec<Vec<Shared>>>,
}

#[derive(Debug)]
enum Shared {
    Word(AtomicU64),
    /// Plain (non-atomic) memory.
    Data(Watched<u64>),
    /// A cell outside every region, or one that was never resolved.
    Gone,
}

/// Returns the newest value of a cell in execution order, by a compare-and-swap that changes
/// nothing. A plain load may return an older value where no happens-before edge forbids it; no
/// network does that for a wait or a get.
pub(crate) fn newest(cell: &AtomicU64, order: Ordering) -> u64 {
    const SAME: u64 = 0x5afe_5afe_5afe_5afe;
    match cell.compare_exchange(SAME, SAME, order, order) {
        Ok(value) | Err(value) => value,
    }
}

impl Cells {
    pub(crate) fn new(ranks: usize, cells_per_rank: usize) -> Self {
        let of_rank = |_| (0..cells_per_rank).map(|_| Cell::new(0)).collect();
        Cells { quiet: (0..ranks).map(of_rank).collect(), shared: OnceCell::new() }
    }

    /// Shares the cells: from here on each rank is a thread, and loom tracks every access. `kind`
    /// returns the use of each cell of a rank.
    pub(crate) fn share(&self, kind: impl Fn(usize, usize) -> CellUse) {
        let shared = |(rank, (at, cell)): (usize, (usize, &Cell<u64>))| match kind(rank, at) {
            CellUse::Word => Shared::Word(AtomicU64::new(cell.get())),
            CellUse::Data => Shared::Data(Watched::new(cell.get())),
            CellUse::None => Shared::Gone,
        };
        let ranks = self.quiet.iter().enumerate();
        let all = ranks.map(|(rank, cells)| cells.iter().enumerate().map(|cell| shared((rank, cell))).collect());
        self.shared.set(all.collect()).expect("shared once");
    }

    pub(crate) fn are_shared(&self) -> bool {
        self.shared.get().is_some()
    }

    fn shared(&self, rank: Rank, cell: usize) -> Option<&Shared> {
        self.shared.get().map(|all| &all[rank.index()][cell])
    }

    fn quiet(&self, rank: Rank, cell: usize) -> &Cell<u64> {
        &self.quiet[rank.index()][cell]
    }

    /// Returns whether loom treats the cell as plain memory.
    pub(crate) fn is_data(&self, rank: Rank, cell: usize) -> bool {
        matches!(self.shared(rank, cell), Some(Shared::Data(_)))
    }

    /// Returns the value that a get or a wait sees.
    pub(crate) fn newest(&self, rank: Rank, cell: usize, order: Ordering) -> u64 {
        match self.shared(rank, cell) {
            None => self.quiet(rank, cell).get(),
            Some(Shared::Word(word)) => newest(word, order),
            Some(Shared::Data(data)) => data.get(),
            Some(Shared::Gone) => gone(rank, cell),
        }
    }

    /// Returns the value that a load by the cell's owner sees.
    pub(crate) fn load(&self, rank: Rank, cell: usize, order: Ordering) -> u64 {
        match self.shared(rank, cell) {
            Some(Shared::Word(word)) => word.load(order),
            _ => self.newest(rank, cell, order),
        }
    }

    pub(crate) fn set(&self, rank: Rank, cell: usize, bits: u64, order: Ordering) {
        match self.shared(rank, cell) {
            None => self.quiet(rank, cell).set(bits),
            Some(Shared::Word(word)) => drop(word.swap(bits, order)),
            Some(Shared::Data(data)) => data.set(bits),
            Some(Shared::Gone) => gone(rank, cell),
        }
    }

    /// Executes an atomic operation. Returns the word's old value.
    pub(crate) fn change(&self, rank: Rank, cell: usize, amo: Amo<u64>, order: Ordering) -> u64 {
        match self.shared(rank, cell) {
            None => {
                let old = self.quiet(rank, cell).get();
                self.quiet(rank, cell).set(amo.apply(old));
                old
            }
            Some(Shared::Word(word)) => match amo {
                Amo::Add(v) => word.fetch_add(v, order),
                Amo::Swap(v) => word.swap(v, order),
                Amo::Or(v) => word.fetch_or(v, order),
                Amo::And(v) => word.fetch_and(v, order),
                Amo::Xor(v) => word.fetch_xor(v, order),
                Amo::CompareSwap { expected, new } => match word.compare_exchange(expected, new, order, Acquire) {
                    Ok(old) | Err(old) => old,
                },
            },
            Some(Shared::Data(_)) => panic!("an atomic on data: cell {cell} of rank {rank}"),
            Some(Shared::Gone) => gone(rank, cell),
        }
    }

    /// Returns every nonzero cell as (rank, cell, value).
    pub(crate) fn residue(&self) -> Vec<(usize, usize, u64)> {
        let ranks = self.quiet.iter().enumerate();
        let all = ranks.flat_map(|(rank, cells)| (0..cells.len()).map(move |cell| (rank, cell)));
        let there =
            all.filter(|(rank, cell)| !matches!(self.shared(Rank::new(*rank as u32), *cell), Some(Shared::Gone)));
        let values = there.map(|(rank, cell)| (rank, cell, self.newest(Rank::new(rank as u32), cell, Acquire)));
        values.filter(|(.., value)| *value != 0).collect()
    }
}

fn gone(rank: Rank, cell: usize) -> ! {
    panic!("cell {cell} of rank {rank} belonged to no region, or was not resolved, when the set-up was over")
}
