//! A job under loom: memory, what its ranks are about, parking, time, and what dropped futures
//! still owe.

use crate::{
    Config,
    cells::{Cells, newest},
    delivery::Posted,
    memory::Regions,
};
use loom::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed},
    },
    thread::Thread,
};
use rdma_fabric::Rank;
use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll},
};

#[derive(Debug, Default)]
pub(crate) struct RankState {
    pub(crate) thread: Option<Thread>,
    /// Cells this rank waits on, and its `delivered` count as [`DELIVERED`].
    waits: Vec<usize>,
    /// Puts not delivered, in posting order.
    pub(crate) pending: VecDeque<Posted>,
    /// How many puts were posted ever.
    pub(crate) posted: u64,
    pub(crate) nic: Option<Thread>,
    pub(crate) closing: bool,
    /// Writes of data that no flush has covered yet.
    pub(crate) data_in_flight: bool,
    /// Writes of data ever.
    pub(crate) data_puts: u64,
}

/// Stands for the `delivered` counter among the cells a rank waits on.
pub(crate) const DELIVERED: usize = usize::MAX;
/// Stands for the clock there.
const CLOCK: usize = usize::MAX - 1;

/// Shared by all ranks. Loom sees the cells and the counters; the rest changes only together with
/// an operation on them and adds no edge.
#[derive(Debug)]
pub struct Job {
    pub(crate) config: Config,
    pub(crate) cells: Cells,
    /// How many of its puts a rank's network interface has delivered.
    pub(crate) delivered: Vec<AtomicU64>,
    clocks: Vec<AtomicU64>,
    regions: Mutex<Regions>,
    states: Mutex<Vec<RankState>>,
    pub(crate) detached: Detached,
}

impl Job {
    pub(crate) fn new(config: Config) -> Self {
        let counters = || (0..config.ranks).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Job {
            config,
            cells: Cells::new(config.ranks, config.cells_per_rank),
            delivered: counters(),
            clocks: counters(),
            regions: Mutex::new(Regions::new(config.ranks, config.cells_per_rank)),
            states: Mutex::new((0..config.ranks).map(|_| RankState::default()).collect()),
            detached: Detached::new(config.ranks),
        }
    }

    /// Never held across an operation that loom sees: its threads are coroutines of one.
    pub(crate) fn states(&self) -> MutexGuard<'_, Vec<RankState>> {
        self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns what a get sees.
    pub(crate) fn newest(&self, rank: Rank, cell: usize) -> u64 {
        self.cells.newest(rank, cell, Acquire)
    }

    /// Returns all cells that are not zero, as rank, cell and value: what a protocol left behind.
    pub fn residue(&self) -> Vec<(usize, usize, u64)> {
        self.cells.residue()
    }

    // ----- waiting ---------------------------------------------------------------------------

    /// Ends the waits on this cell's next poll. In one step with the write before it: no operation
    /// that loom sees stands between.
    pub(crate) fn ring(&self, rank: Rank, cell: usize) {
        let state = &mut self.states()[rank.index()];
        let before = state.waits.len();
        state.waits.retain(|waits_on| *waits_on != cell);
        if state.waits.len() < before
            && let Some(thread) = &state.thread
        {
            thread.unpark();
        }
    }

    /// The next write to this cell of its own ends a wait of `me`.
    pub(crate) fn wait_for_write(&self, me: Rank, cell: usize) {
        let waits = &mut self.states()[me.index()].waits;
        if !waits.contains(&cell) {
            waits.push(cell);
        }
    }

    /// Returns whether a counter has come to a value; if not, `me` is registered to be woken, in
    /// one step with the look.
    fn poll_counter(&self, me: Rank, name: usize, counter: &AtomicU64, wanted: u64) -> Poll<()> {
        if newest(counter, Acquire) >= wanted {
            return Poll::Ready(());
        }
        self.wait_for_write(me, name);
        Poll::Pending
    }

    /// Returns whether the network interface of `me` has delivered so many puts.
    pub(crate) fn has_delivered(&self, me: Rank, puts: u64) -> bool {
        newest(&self.delivered[me.index()], Acquire) >= puts
    }

    /// Waits for that.
    pub(crate) fn poll_delivered(&self, me: Rank, puts: u64) -> Poll<()> {
        self.poll_counter(me, DELIVERED, &self.delivered[me.index()], puts)
    }

    // ----- time ------------------------------------------------------------------------------

    /// Picoseconds on a rank's clock; it stands still unless the test [advances](Job::advance) it.
    pub(crate) fn clock(&self, rank: Rank) -> u64 {
        newest(&self.clocks[rank.index()], Relaxed)
    }

    /// Lets a rank's clock show `ps`. A test calls it from another rank, so that loom places the
    /// moment.
    pub fn advance(&self, rank: Rank, ps: u64) {
        self.clocks[rank.index()].swap(ps, Relaxed);
        self.ring(rank, CLOCK);
    }

    /// Waits until a rank's clock shows so much.
    pub(crate) fn poll_clock(&self, me: Rank, until: u64) -> Poll<()> {
        self.poll_counter(me, CLOCK, &self.clocks[me.index()], until)
    }
}

type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The detached futures of all ranks of a job.
pub(crate) struct Detached {
    /// Not borrowed while one of them runs.
    by_rank: Vec<RefCell<Vec<Rest>>>,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detached({} ranks)", self.by_rank.len())
    }
}

impl Detached {
    pub(crate) fn new(ranks: usize) -> Self {
        Detached { by_rank: (0..ranks).map(|_| RefCell::default()).collect() }
    }

    pub(crate) fn add(&self, rank: Rank, rest: Rest) {
        self.by_rank[rank.index()].borrow_mut().push(rest);
    }

    /// Polls a rank's, and what they detach. True if all are over.
    pub(crate) fn poll(&self, rank: Rank, cx: &mut Context<'_>) -> bool {
        let mine = &self.by_rank[rank.index()];
        let mut kept = Vec::new();
        loop {
            let batch = mine.take();
            if batch.is_empty() {
                break;
            }
            for mut rest in batch {
                if rest.as_mut().poll(cx).is_pending() {
                    kept.push(rest);
                }
            }
        }
        let over = kept.is_empty();
        mine.replace(kept);
        over
    }
}
