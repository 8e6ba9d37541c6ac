//! A job under loom: memory, the state of its ranks, parking, time, and the work that dropped
//! futures still owe.

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
    /// The cells that this rank waits on; its counters appear as [`DELIVERED`] and [`CLOCK`].
    waits: Vec<usize>,
    /// Puts not yet delivered, in posting order.
    pub(crate) pending: VecDeque<Posted>,
    /// The number of puts posted so far.
    pub(crate) posted: u64,
    pub(crate) nic: Option<Thread>,
    pub(crate) closing: bool,
    /// Whether there are writes of data that no flush has covered yet.
    pub(crate) data_in_flight: bool,
    /// The number of writes of data so far.
    pub(crate) data_puts: u64,
}

/// Stands for the `delivered` counter among the cells that a rank waits on.
pub(crate) const DELIVERED: usize = usize::MAX;
/// Stands for the clock among the cells that a rank waits on.
const CLOCK: usize = usize::MAX - 1;

/// A job, shared by all its ranks. Loom sees the cells and the counters; the rest changes only
/// together with an operation on these and adds no edge.
#[derive(Debug)]
pub struct Job {
    pub(crate) config: Config,
    pub(crate) cells: Cells,
    /// For each rank, the number of its puts that its network interface has delivered.
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

    /// Locks the states of all ranks. The guard is never held across an operation that loom sees,
    /// as loom's threads are coroutines of one thread.
    pub(crate) fn states(&self) -> MutexGuard<'_, Vec<RankState>> {
        self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the value that a get sees.
    pub(crate) fn newest(&self, rank: Rank, cell: usize) -> u64 {
        self.cells.newest(rank, cell, Acquire)
    }

    /// Returns all cells that are not zero, as rank, cell and value: what a protocol left behind.
    pub fn residue(&self) -> Vec<(usize, usize, u64)> {
        self.cells.residue()
    }

    // ----- waiting ---------------------------------------------------------------------------

    /// Ends the rank's wait on this cell. This is one step with the preceding write: no operation
    /// that loom sees comes in between.
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

    /// Registers `me` to be woken by the next write to this cell of its own.
    pub(crate) fn wait_for_write(&self, me: Rank, cell: usize) {
        let waits = &mut self.states()[me.index()].waits;
        if !waits.contains(&cell) {
            waits.push(cell);
        }
    }

    /// Returns whether a counter has reached `wanted`; if not, registers `me` to be woken, in one
    /// step with the look.
    fn poll_counter(&self, me: Rank, name: usize, counter: &AtomicU64, wanted: u64) -> Poll<()> {
        if newest(counter, Acquire) >= wanted {
            return Poll::Ready(());
        }
        self.wait_for_write(me, name);
        Poll::Pending
    }

    /// Returns whether the network interface of `me` has delivered its first `puts` puts.
    pub(crate) fn has_delivered(&self, me: Rank, puts: u64) -> bool {
        newest(&self.delivered[me.index()], Acquire) >= puts
    }

    /// Waits until the network interface of `me` has delivered its first `puts` puts.
    pub(crate) fn poll_delivered(&self, me: Rank, puts: u64) -> Poll<()> {
        self.poll_counter(me, DELIVERED, &self.delivered[me.index()], puts)
    }

    // ----- time ------------------------------------------------------------------------------

    /// Returns the time on a rank's clock in picoseconds. It stands still unless the test
    /// [advances](Job::advance) it.
    pub(crate) fn clock(&self, rank: Rank) -> u64 {
        newest(&self.clocks[rank.index()], Relaxed)
    }

    /// Sets a rank's clock to `ps` picoseconds. A test calls this from another rank, so that loom
    /// chooses the moment.
    pub fn advance(&self, rank: Rank, ps: u64) {
        self.clocks[rank.index()].swap(ps, Relaxed);
        self.ring(rank, CLOCK);
    }

    /// Waits until a rank's clock shows `until` picoseconds.
    pub(crate) fn poll_clock(&self, me: Rank, until: u64) -> Poll<()> {
        self.poll_counter(me, CLOCK, &self.clocks[me.index()], until)
    }
}

type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The detached futures of all ranks of a job.
pub(crate) struct Detached {
    /// The futures of each rank. A list is not borrowed while one of its futures runs.
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

    /// Polls a rank's detached futures, and those that they detach. Returns true if all are over.
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
