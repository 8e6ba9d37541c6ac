//! A job under loom: cells, delivery of puts, parking; and the threads that are its ranks.

use super::{LoomFabric, detached::Detached, memory::Regions};
use loom::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
    thread::{self, Thread},
};
use rdma_fabric::{Caps, Rank};
use std::{
    collections::VecDeque,
    future::Future,
    pin::pin,
    rc::Rc,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

/// When a posted put reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// At once: the earliest a network can be.
    AtPost,
    /// When the poster flushes, blocks or ends: the latest it can be.
    AtFlush,
    /// By a thread per rank, its network interface, in the order posted but at any time: everything in
    /// between. Costs a loom thread per rank.
    Nic,
}

/// What a job's network is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) ranks: usize,
    pub(crate) cells_per_rank: usize,
    pub(crate) delivery: Delivery,
    pub(crate) caps: Caps,
    /// The mutation "relaxed spin": `wait_until` without its acquire.
    pub(crate) relaxed_wait: bool,
    /// Whether the result of an operation takes another poll, so that the future may be dropped in between.
    pub(crate) late_results: bool,
    /// Whether all ranks share a node.
    pub(crate) together: bool,
}

impl Config {
    pub(crate) fn new(ranks: usize, delivery: Delivery) -> Self {
        Config {
            ranks,
            cells_per_rank: 32,
            delivery,
            caps: Caps::weakest(),
            relaxed_wait: false,
            late_results: false,
            together: false,
        }
    }
}

/// A put on its way.
#[derive(Debug)]
struct Posted {
    target: Rank,
    cell: usize,
    bits: u64,
    /// Whether it carries what its poster did before.
    release: bool,
}

#[derive(Debug, Default)]
struct RankState {
    thread: Option<Thread>,
    /// Cells this rank waits on, and its `delivered` count as [`DELIVERED`].
    waits: Vec<usize>,
    /// Puts not delivered, in posting order.
    pending: VecDeque<Posted>,
    /// How many puts were posted ever.
    posted: u64,
    nic: Option<Thread>,
    closing: bool,
    /// Writes of protected data that no flush has covered yet.
    data_in_flight: bool,
    /// Something of it wants to be polled without waiting for anybody.
    again: bool,
}

/// Stands for the `delivered` counter among the cells a rank waits on.
const DELIVERED: usize = usize::MAX;

/// Shared by all ranks. Loom sees the cells and the counters; the rest changes only together with an
/// operation on them and adds no edge.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) config: Config,
    cells: Vec<Vec<AtomicU64>>,
    /// How many of its puts a rank's network interface has delivered.
    delivered: Vec<AtomicU64>,
    clocks: Vec<AtomicU64>,
    regions: Mutex<Regions>,
    states: Mutex<Vec<RankState>>,
    pub(crate) detached: Detached,
}

/// The newest value of a cell, in execution order: a comparison that changes nothing. A plain load may
/// return an older value for as long as no edge forbids it, which no network does to a wait or a get.
fn newest(cell: &AtomicU64, order: loom::sync::atomic::Ordering) -> u64 {
    const SAME: u64 = 0x5afe_5afe_5afe_5afe;
    match cell.compare_exchange(SAME, SAME, order, order) {
        Ok(value) | Err(value) => value,
    }
}

impl Job {
    fn new(config: Config) -> Self {
        let cells = |n| (0..n).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Job {
            config,
            cells: (0..config.ranks).map(|_| cells(config.cells_per_rank)).collect(),
            delivered: cells(config.ranks),
            clocks: cells(config.ranks),
            regions: Mutex::new(Regions::new(config.ranks, config.cells_per_rank)),
            states: Mutex::new((0..config.ranks).map(|_| RankState::default()).collect()),
            detached: Detached::new(config.ranks),
        }
    }

    /// Never held across an operation that loom sees: its threads are coroutines of one.
    fn states(&self) -> MutexGuard<'_, Vec<RankState>> {
        self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn cell(&self, rank: Rank, cell: usize) -> &AtomicU64 {
        &self.cells[rank.index()][cell]
    }

    /// What a get or a wait sees.
    pub(crate) fn newest(&self, rank: Rank, cell: usize) -> u64 {
        newest(self.cell(rank, cell), Acquire)
    }

    /// All cells that are not zero: what a protocol left behind.
    pub(crate) fn residue(&self) -> Vec<(usize, usize, u64)> {
        let all = self.cells.iter().enumerate().flat_map(|(r, cells)| cells.iter().enumerate().map(move |c| (r, c)));
        all.map(|(r, (c, cell))| (r, c, newest(cell, Acquire))).filter(|(.., value)| *value != 0).collect()
    }

    /// End the waits on this cell's next poll. In one step with the write before it: no operation that loom sees
    /// stands between.
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

    // ----- puts ------------------------------------------------------------------------------

    pub(crate) fn post(&self, me: Rank, target: Rank, cell: usize, bits: u64) {
        let release = !self.states()[me.index()].data_in_flight;
        let put = Posted { target, cell, bits, release };
        if self.config.delivery == Delivery::AtPost {
            self.deliver(&put);
            return;
        }
        let state = &mut self.states()[me.index()];
        state.pending.push_back(put);
        state.posted += 1;
        if let Some(nic) = &state.nic {
            nic.unpark();
        }
    }

    fn deliver(&self, put: &Posted) {
        // Release: pairs with the acquire of `newest` and of atomics.
        self.cell(put.target, put.cell).swap(put.bits, if put.release { Release } else { Relaxed });
        self.ring(put.target, put.cell);
    }

    /// Deliver what `me` has pending, to one target or to all, where its own thread does that.
    pub(crate) fn drain(&self, me: Rank, target: Option<Rank>) {
        if self.config.delivery != Delivery::AtFlush {
            return;
        }
        loop {
            let next = {
                let pending = &mut self.states()[me.index()].pending;
                let place = pending.iter().position(|put| target.is_none_or(|t| t == put.target));
                place.and_then(|place| pending.remove(place))
            };
            let Some(put) = next else { return };
            self.deliver(&put);
        }
    }

    pub(crate) async fn flush(&self, me: Rank, target: Option<Rank>) {
        self.drain(me, target);
        if self.config.delivery == Delivery::Nic {
            let wanted = {
                let state = &self.states()[me.index()];
                let last = state.pending.iter().rposition(|put| target.is_none_or(|t| t == put.target));
                last.map(|last| state.posted - (state.pending.len() - last - 1) as u64)
            };
            if let Some(wanted) = wanted {
                self.wait(me, DELIVERED, &self.delivered[me.index()], |delivered| delivered >= wanted).await;
            }
        }
        // What was written before is released by everything this rank does from now on.
        fence(Release);
        self.states()[me.index()].data_in_flight = false;
    }

    /// The body of a rank's network interface.
    fn nic(&self, me: Rank) {
        loop {
            let next = {
                let state = &self.states()[me.index()];
                match state.pending.front() {
                    Some(put) => Some(Posted { ..*put }),
                    None if state.closing => return,
                    None => None,
                }
            };
            let Some(put) = next else {
                thread::park();
                continue;
            };
            self.deliver(&put);
            self.delivered[me.index()].fetch_add(1, Release);
            self.states()[me.index()].pending.pop_front();
            self.ring(me, DELIVERED);
        }
    }

    // ----- protected data --------------------------------------------------------------------

    /// From here to the next flush this rank's operations release only what came before.
    pub(crate) fn data_put(&self, me: Rank) {
        if self.config.caps.put_order == rdma_fabric::PutOrder::AllTargets {
            return;
        }
        let state = &mut self.states()[me.index()];
        if !state.data_in_flight {
            fence(Release);
            state.data_in_flight = true;
        }
    }

    /// Whether this rank's atomics carry everything it did, or only what its last flush covered.
    pub(crate) fn releases(&self, me: Rank) -> bool {
        !self.states()[me.index()].data_in_flight
    }

    // ----- waiting ---------------------------------------------------------------------------

    async fn wait(&self, me: Rank, name: usize, cell: &AtomicU64, mut until: impl FnMut(u64) -> bool) -> u64 {
        let order = if self.config.relaxed_wait { Relaxed } else { Acquire };
        std::future::poll_fn(|_| {
            let value = newest(cell, order);
            if until(value) {
                return Poll::Ready(value);
            }
            // In one step with the look above, so that no write can fall in between.
            let first = {
                let waits = &mut self.states()[me.index()].waits;
                let first = !waits.contains(&name);
                if first {
                    waits.push(name);
                }
                first
            };
            if first {
                self.drain(me, None);
            }
            Poll::Pending
        })
        .await
    }

    pub(crate) async fn wait_cell(&self, me: Rank, cell: usize, until: impl FnMut(u64) -> bool) -> u64 {
        self.wait(me, cell, self.cell(me, cell), until).await
    }

    // ----- time ------------------------------------------------------------------------------

    const CLOCK: usize = usize::MAX - 1;

    /// Picoseconds on a rank's clock; it stands still unless the test [advances](Job::advance) it.
    pub(crate) fn clock(&self, rank: Rank) -> u64 {
        newest(&self.clocks[rank.index()], Relaxed)
    }

    /// Let a rank's clock show `ps`. A test calls it from another rank, so that loom places the moment.
    pub(crate) fn advance(&self, rank: Rank, ps: u64) {
        self.clocks[rank.index()].swap(ps, Relaxed);
        self.ring(rank, Self::CLOCK);
    }

    pub(crate) async fn sleep(&self, me: Rank, until: u64) {
        self.wait(me, Self::CLOCK, &self.clocks[me.index()], |now| now >= until).await;
    }

    // ----- ranks -----------------------------------------------------------------------------

    /// Poll, park, poll again, until the program and all that it detached are over. Whoever ends a wait unparks the rank,
    /// so no waker is needed.
    fn block_on<O>(&self, me: Rank, future: impl Future<Output = O>) -> O {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = None;
        loop {
            if out.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(&mut cx)
            {
                out = Some(done);
            }
            if self.detached.poll(me, &mut cx)
                && let Some(out) = out.take()
            {
                return out;
            }
            if !std::mem::take(&mut self.states()[me.index()].again) {
                thread::park();
            }
        }
    }

    /// The rank wants to be polled again at once.
    pub(crate) fn poll_again(&self, me: Rank) {
        self.states()[me.index()].again = true;
    }

    fn run_rank<O>(&self, me: Rank, program: impl Future<Output = O>) -> O {
        self.states()[me.index()].thread = Some(thread::current());
        let out = self.block_on(me, program);
        self.drain(me, None);
        let state = &mut self.states()[me.index()];
        // Later rings must not reach a thread that has ended, or waits for others to end.
        state.thread = None;
        state.closing = true;
        if let Some(nic) = &state.nic {
            nic.unpark();
        }
        out
    }
}

/// Run `program` as every rank, rank 0 on the calling thread, and return the job when all have ended and
/// every put has been delivered. What the ranks return, their registered memory above all, lives until then.
/// Call it inside a loom model.
pub(crate) fn run<P, R>(config: Config, program: P) -> Rc<Job>
where
    P: Fn(LoomFabric) -> R + 'static,
    R: Future,
    R::Output: 'static,
{
    let job = Rc::new(Job::new(config));
    let program = Rc::new(program);
    let (mut threads, mut nics) = (Vec::new(), Vec::new());
    if config.delivery == Delivery::Nic {
        for rank in (0..config.ranks as u32).map(Rank::new) {
            let shared = job.clone();
            let nic = thread::spawn(move || shared.nic(rank));
            job.states()[rank.index()].nic = Some(nic.thread().clone());
            nics.push(nic);
        }
    }
    for rank in (1..config.ranks as u32).map(Rank::new) {
        let (job, program) = (job.clone(), program.clone());
        threads.push(thread::spawn(move || {
            let fabric = LoomFabric::new(job.clone(), rank);
            job.run_rank(rank, program(fabric))
        }));
    }
    let first = Rank::new(0);
    let mut outs = vec![job.run_rank(first, program(LoomFabric::new(job.clone(), first)))];
    for thread in threads {
        outs.push(thread.join().expect("loom reports a panic itself"));
    }
    for nic in nics {
        nic.join().expect("loom reports a panic itself");
    }
    drop(outs);
    job
}
