//! A job under loom: memory, the state of its ranks, parking, time, and the cleanup work of dropped
//! futures.

use crate::{
    Config,
    cells::{Cells, newest},
    delivery::Posted,
    helpers::Helpers,
    memory::Regions,
};
use loom::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed},
    },
    thread::Thread,
};
use rdma_fabric::{Rank, provider::KeepAlive};
use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    fmt,
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll},
};

/// A rank's program, or one of its helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) rank: Rank,
    /// The index of its state: programs have the indices of their ranks, helpers follow.
    pub(crate) task: usize,
}

impl Actor {
    pub(crate) fn program(rank: Rank) -> Self {
        Actor { rank, task: rank.index() }
    }
}

/// The state of a program or a helper.
#[derive(Debug)]
pub(crate) struct TaskState {
    rank: Rank,
    pub(crate) thread: Option<Thread>,
    /// Whether this is a program that has returned.
    pub(crate) over: bool,
    /// The cells on which it waits; the counters of its rank appear as [`DELIVERED`] and [`CLOCK`].
    waits: Vec<usize>,
    /// Puts not yet delivered, in posting order.
    pub(crate) pending: VecDeque<Posted>,
    /// The number of puts posted so far.
    pub(crate) posted: u64,
    pub(crate) nic: Option<Thread>,
    pub(crate) closing: bool,
    /// Whether there are data writes that no flush has covered yet.
    pub(crate) data_in_flight: bool,
    /// The number of data writes so far.
    pub(crate) data_puts: u64,
}

impl TaskState {
    fn new(rank: Rank) -> Self {
        TaskState {
            rank,
            thread: None,
            over: false,
            waits: Vec::new(),
            pending: VecDeque::new(),
            posted: 0,
            nic: None,
            closing: false,
            data_in_flight: false,
            data_puts: 0,
        }
    }
}

/// Represents the `delivered` counter among the cells on which a task waits.
pub(crate) const DELIVERED: usize = usize::MAX;
/// Represents the clock among the cells on which a task waits.
const CLOCK: usize = usize::MAX - 1;

/// A job, shared by all its ranks. Loom tracks the cells and the counters; the other fields change
/// only together with an operation on these and add no happens-before edge.
#[derive(Debug)]
pub struct Job {
    pub(crate) config: Config,
    pub(crate) cells: Cells,
    /// For each rank, the number of its puts that its network interface has delivered.
    pub(crate) delivered: Vec<AtomicU64>,
    clocks: Vec<AtomicU64>,
    regions: Mutex<Regions>,
    states: Mutex<Vec<TaskState>>,
    pub(crate) helpers: Helpers,
    pub(crate) detached: Detached,
    /// Identifies places that were resolved in this job.
    pub(crate) keep_alive: KeepAlive,
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
            states: Mutex::new((0..config.ranks as u32).map(|rank| TaskState::new(Rank::new(rank))).collect()),
            helpers: Helpers::default(),
            detached: Detached::default(),
            keep_alive: KeepAlive::new(()),
        }
    }

    /// Adds a helper of a rank.
    pub(crate) fn add_helper(&self, rank: Rank) -> Actor {
        let mut states = self.states();
        states.push(TaskState::new(rank));
        Actor { rank, task: states.len() - 1 }
    }

    /// Locks the states of all programs and helpers. The guard must not be held across an operation
    /// that loom tracks, because loom's threads are coroutines of one OS thread.
    pub(crate) fn states(&self) -> MutexGuard<'_, Vec<TaskState>> {
        self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the value that a get returns.
    pub(crate) fn newest(&self, rank: Rank, cell: usize) -> u64 {
        self.cells.newest(rank, cell, Acquire)
    }

    /// Returns every nonzero cell as (rank, cell, value), which shows the state that a protocol
    /// left behind.
    pub fn residue(&self) -> Vec<(usize, usize, u64)> {
        self.cells.residue()
    }

    // ----- waiting ---------------------------------------------------------------------------

    /// Wakes the rank's tasks that wait on this cell. The wake-up and the preceding write are one
    /// step: no operation that loom tracks occurs in between.
    pub(crate) fn ring(&self, rank: Rank, cell: usize) {
        for state in self.states().iter_mut().filter(|state| state.rank == rank) {
            let before = state.waits.len();
            state.waits.retain(|waits_on| *waits_on != cell);
            if state.waits.len() < before
                && let Some(thread) = &state.thread
            {
                thread.unpark();
            }
        }
    }

    /// Marks the program of a rank as returned, which ends its helpers.
    pub(crate) fn end_program(&self, rank: Rank) {
        let mut states = self.states();
        states[rank.index()].over = true;
        let helpers = states.iter().enumerate().filter(|(task, state)| *task != rank.index() && state.rank == rank);
        helpers.filter_map(|(_, state)| state.thread.as_ref()).for_each(Thread::unpark);
    }

    /// Registers `me` to be woken by the next write to this cell of its rank.
    pub(crate) fn wait_for_write(&self, me: Actor, cell: usize) {
        let waits = &mut self.states()[me.task].waits;
        if !waits.contains(&cell) {
            waits.push(cell);
        }
    }

    /// Returns whether a counter has reached `wanted`; if not, registers `me` to be woken. Check
    /// and registration are one step.
    fn poll_counter(&self, me: Actor, name: usize, counter: &AtomicU64, wanted: u64) -> Poll<()> {
        if newest(counter, Acquire) >= wanted {
            return Poll::Ready(());
        }
        self.wait_for_write(me, name);
        Poll::Pending
    }

    /// Returns whether the network interface of `me` has delivered its first `puts` puts.
    pub(crate) fn has_delivered(&self, me: Actor, puts: u64) -> bool {
        newest(&self.delivered[me.rank.index()], Acquire) >= puts
    }

    /// Waits until the network interface of `me` has delivered its first `puts` puts.
    pub(crate) fn poll_delivered(&self, me: Actor, puts: u64) -> Poll<()> {
        self.poll_counter(me, DELIVERED, &self.delivered[me.rank.index()], puts)
    }

    // ----- time ------------------------------------------------------------------------------

    /// Returns the time on a rank's clock in picoseconds. The clock changes only when a test
    /// [advances](Job::advance) it.
    pub(crate) fn clock(&self, rank: Rank) -> u64 {
        newest(&self.clocks[rank.index()], Relaxed)
    }

    /// Sets a rank's clock to `ps` picoseconds. Tests call this from another rank, so that loom
    /// chooses the moment.
    pub fn advance(&self, rank: Rank, ps: u64) {
        self.clocks[rank.index()].swap(ps, Relaxed);
        self.ring(rank, CLOCK);
    }

    /// Waits until a rank's clock shows `until` picoseconds.
    pub(crate) fn poll_clock(&self, me: Actor, until: u64) -> Poll<()> {
        self.poll_counter(me, CLOCK, &self.clocks[me.rank.index()], until)
    }
}

type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The detached futures of all tasks of a job.
#[derive(Default)]
pub(crate) struct Detached {
    /// The futures of each task. They are removed while one of them is polled.
    by_task: RefCell<BTreeMap<usize, Vec<Rest>>>,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detached by {} tasks", self.by_task.borrow().len())
    }
}

impl Detached {
    pub(crate) fn add(&self, me: Actor, rest: Rest) {
        self.by_task.borrow_mut().entry(me.task).or_default().push(rest);
    }

    fn take(&self, me: Actor) -> Vec<Rest> {
        self.by_task.borrow_mut().remove(&me.task).unwrap_or_default()
    }

    /// Polls a task's detached futures, and those that they detach. Returns true if all have
    /// completed.
    pub(crate) fn poll(&self, me: Actor, cx: &mut Context<'_>) -> bool {
        let mut kept = Vec::new();
        loop {
            let batch = self.take(me);
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
        if !over {
            self.by_task.borrow_mut().insert(me.task, kept);
        }
        over
    }
}
