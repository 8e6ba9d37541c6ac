//! The network's state: memory, what is on its way, and who may go on.

use crate::{detached::Detached, memory::Regions};
use rdma_fabric::{Amo, Rank};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// Where a posted atomic or get leaves its result.
pub(crate) type Slot = Rc<RefCell<Option<Vec<u64>>>>;

/// Some cells of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    pub(crate) rank: Rank,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

#[derive(Debug)]
pub(crate) enum Op {
    Atomic(Amo<u64>),
    Get,
}

/// An atomic or get that has not reached its target.
#[derive(Debug)]
pub(crate) struct Posted {
    by: Rank,
    op: Op,
    at: Cells,
    result: Slot,
}

/// A word that has not reached its target.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) by: Rank,
    pub(crate) target: Rank,
    cell: usize,
    bits: u64,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A rank's CPU goes on.
    Step(usize),
    /// The n-th posted atomic or get happens.
    Execute(usize),
    /// The n-th put arrives.
    Deliver(usize),
    /// A rank's deadline comes.
    Expire(usize),
}

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) regions: Regions,
    cells: Vec<Vec<u64>>,
    posted: Vec<Posted>,
    pub(crate) puts: Vec<Put>,
    /// Ranks that have something to go on with.
    ready: Vec<bool>,
    /// Cells a rank waits on.
    waits: Vec<Vec<usize>>,
    /// Deadlines, by rank; one each is enough, the earliest.
    timers: BTreeMap<usize, u64>,
    /// Every rank's clock in picoseconds; moved only by its own deadlines that come.
    now: Vec<u64>,
    /// All that a rank was ever told, in one number: with a deterministic program, its state.
    heard: Vec<u64>,
    /// Sum over all cells, so that it need not be taken again for each state.
    memory_hash: u64,
    pub(crate) detached: Rc<Detached>,
}

/// A good enough mixing of two words.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.rotate_left(25) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Net {
    pub(crate) fn new(ranks: usize, cells_per_rank: usize) -> Self {
        Net {
            regions: Regions::new(ranks, cells_per_rank),
            cells: vec![vec![0; cells_per_rank]; ranks],
            posted: Vec::new(),
            puts: Vec::new(),
            ready: vec![true; ranks],
            waits: vec![Vec::new(); ranks],
            timers: BTreeMap::new(),
            now: vec![0; ranks],
            heard: vec![0; ranks],
            memory_hash: 0,
            detached: Rc::new(Detached::new(ranks)),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.cells.len()
    }

    /// A rank is told `value`.
    pub(crate) fn tell(&mut self, rank: Rank, value: u64) {
        let heard = &mut self.heard[rank.index()];
        *heard = mix(*heard, value);
    }

    /// A rank can go on.
    pub(crate) fn wake(&mut self, rank: Rank) {
        self.ready[rank.index()] = true;
    }

    pub(crate) fn now(&self, rank: Rank) -> u64 {
        self.now[rank.index()]
    }

    pub(crate) fn read(&self, rank: Rank, cell: usize) -> u64 {
        self.cells[rank.index()][cell]
    }

    pub(crate) fn write(&mut self, rank: Rank, cell: usize, bits: u64) {
        let place = mix(rank.index() as u64 + 1, cell as u64);
        let of = |bits| if bits == 0 { 0 } else { mix(place, bits) };
        let word = &mut self.cells[rank.index()][cell];
        self.memory_hash = self.memory_hash.wrapping_sub(of(*word)).wrapping_add(of(bits));
        *word = bits;
        let waits = &mut self.waits[rank.index()];
        if let Some(place) = waits.iter().position(|waits_on| *waits_on == cell) {
            waits.swap_remove(place);
            self.ready[rank.index()] = true;
        }
    }

    /// Words that are not zero, as rank, cell, value.
    pub(crate) fn residue(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let all = self.cells.iter().enumerate();
        all.flat_map(|(rank, cells)| cells.iter().enumerate().map(move |(cell, bits)| (rank, cell, *bits)))
            .filter(|(.., bits)| *bits != 0)
    }

    pub(crate) fn post(&mut self, by: Rank, op: Op, at: Cells) -> Slot {
        let result = Slot::default();
        self.posted.push(Posted { by, op, at, result: result.clone() });
        result
    }

    pub(crate) fn put(&mut self, by: Rank, target: Rank, cell: usize, bits: u64) {
        self.puts.push(Put { by, target, cell, bits });
    }

    /// Whether nothing that `by` put to `target` (or to anybody) is on its way.
    pub(crate) fn flushed(&self, by: Rank, target: Option<Rank>) -> bool {
        !self.puts.iter().any(|put| put.by == by && target.is_none_or(|t| t == put.target))
    }

    pub(crate) fn wait_on(&mut self, rank: Rank, cell: usize) {
        let waits = &mut self.waits[rank.index()];
        if !waits.contains(&cell) {
            waits.push(cell);
        }
    }

    pub(crate) fn timer(&mut self, rank: Rank, at: u64) {
        let timer = self.timers.entry(rank.index()).or_insert(at);
        *timer = at.min(*timer);
    }

    /// What may happen now, in a fixed order.
    pub(crate) fn actions(&self, into: &mut Vec<Action>) {
        into.clear();
        into.extend(self.ready.iter().enumerate().filter(|(_, ready)| **ready).map(|(rank, _)| Action::Step(rank)));
        into.extend((0..self.posted.len()).map(Action::Execute));
        into.extend((0..self.puts.len()).map(Action::Deliver));
        into.extend(self.timers.keys().map(|rank| Action::Expire(*rank)));
    }

    /// Whose rank an action belongs to.
    pub(crate) fn actor(&self, action: Action) -> usize {
        match action {
            Action::Step(rank) | Action::Expire(rank) => rank,
            Action::Execute(n) => self.posted[n].by.index(),
            Action::Deliver(n) => self.puts[n].by.index(),
        }
    }

    /// Do everything but a step, which the caller does after this.
    pub(crate) fn act(&mut self, action: Action) {
        match action {
            Action::Step(rank) => self.ready[rank] = false,
            Action::Execute(n) => {
                let Posted { by, op, at, result } = self.posted.remove(n);
                let mut old: Vec<u64> = (at.first..at.first + at.count).map(|cell| self.read(at.rank, cell)).collect();
                if let Op::Atomic(amo) = op {
                    self.write(at.rank, at.first, amo.apply(old[0]));
                    old.truncate(1);
                }
                *result.borrow_mut() = Some(old);
                self.ready[by.index()] = true;
            }
            Action::Deliver(n) => {
                let put = self.puts.remove(n);
                self.write(put.target, put.cell, put.bits);
                // A flush may be waiting for this.
                self.ready[put.by.index()] = true;
            }
            Action::Expire(rank) => {
                let at = self.timers.remove(&rank).unwrap_or(0);
                self.now[rank] = self.now[rank].max(at);
                self.ready[rank] = true;
            }
        }
    }

    /// A rank has ended: its deadlines concern nobody.
    pub(crate) fn leave(&mut self, rank: usize) {
        self.timers.remove(&rank);
        self.waits[rank].clear();
        self.heard[rank] = u64::MAX;
    }

    /// The whole state in one number.
    pub(crate) fn hash(&self) -> u64 {
        let mut sum = self.memory_hash;
        for posted in &self.posted {
            let op = match posted.op {
                Op::Get => 1,
                Op::Atomic(Amo::Add(v)) => mix(2, v),
                Op::Atomic(Amo::Swap(v)) => mix(3, v),
                Op::Atomic(Amo::CompareSwap { expected, new }) => mix(mix(4, expected), new),
                Op::Atomic(Amo::Or(v)) => mix(5, v),
                Op::Atomic(Amo::And(v)) => mix(6, v),
                Op::Atomic(Amo::Xor(v)) => mix(7, v),
            };
            let at = mix(posted.at.rank.index() as u64, posted.at.first as u64);
            sum = sum.wrapping_add(mix(mix(op, at), posted.by.index() as u64 + 100));
        }
        for put in &self.puts {
            let at = mix(put.target.index() as u64, put.cell as u64);
            sum = sum.wrapping_add(mix(mix(put.bits, at), put.by.index() as u64 + 200));
        }
        let mut hash = self.now.iter().fold(sum, |hash, now| mix(hash, *now));
        for (heard, ready) in self.heard.iter().zip(&self.ready) {
            hash = mix(mix(hash, *heard), u64::from(*ready));
        }
        for (rank, at) in &self.timers {
            hash = mix(mix(hash, *rank as u64), *at);
        }
        hash
    }
}
