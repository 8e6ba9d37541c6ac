//! The simulated machine as seen by ranks and handles.

use super::{core::Core, helpers::Helpers, ranks::Status};
use crate::JobError;
use rdma_fabric::{FabricError, Rank, provider::KeepAlive};
use std::{
    cell::{Cell, RefCell, RefMut},
    collections::HashMap,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
};
use tofu2_job::blocked_depth;

/// The state that the executor, all ranks and all handles of one run share.
pub(super) struct World {
    core: RefCell<Core>,
    /// The waker with which tasks are polled. Waking it requests that the task be polled again.
    waker: Waker,
    again: Arc<Again>,
    /// The helper that is being polled, if any: its lane and its rank.
    helper: Cell<Option<(u32, u32)>>,
    /// The seal of places that were resolved in this run.
    pub(super) keep_alive: KeepAlive,
    pub(super) detached: Detached,
    pub(super) helpers: Helpers,
    /// The reason why no rank is polled any longer: one has aborted the job.
    aborted: RefCell<Option<JobError>>,
    /// The number of nested `block_on` calls on the simulating thread when the run began.
    blocked: usize,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// Set when the task being polled wakes itself. Only the simulating thread accesses it; it is
/// atomic because wakers must be `Send` and `Sync`.
#[derive(Debug, Default)]
struct Again(AtomicBool);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl World {
    pub(super) fn new(core: Core) -> Rc<Self> {
        let again = Arc::new(Again::default());
        Rc::new(World {
            core: RefCell::new(core),
            waker: Waker::from(Arc::clone(&again)),
            again,
            helper: Cell::new(None),
            keep_alive: KeepAlive::new(()),
            detached: Detached::default(),
            helpers: Helpers::default(),
            aborted: RefCell::default(),
            blocked: blocked_depth(),
        })
    }

    /// Calls `run` on behalf of the helper on `lane`, or of a rank's program.
    pub(super) fn run_as<T>(&self, lane: u32, run: impl FnOnce() -> T) -> T {
        let rank = self.core().ranks.rank_of(lane);
        let before = self.helper.replace((rank != lane).then_some((lane, rank)));
        let ran = run();
        self.helper.set(before);
        ran
    }

    /// Returns the lane of a rank that runs: its program's, or that of the helper being polled.
    #[inline]
    pub(super) fn lane_of(&self, rank: u32) -> u32 {
        match self.helper.get() {
            Some((lane, of)) if of == rank => lane,
            _ => rank,
        }
    }

    /// Ends the run once the rank that is being polled returns. Only the first call has an effect.
    pub(super) fn abort(&self, rank: Rank, text: &str, code: i32) -> FabricError {
        let mut aborted = self.aborted.borrow_mut();
        match aborted.get_or_insert_with(|| JobError::Aborted { rank, text: text.to_owned(), code }) {
            JobError::Aborted { rank, code, .. } => FabricError::Aborted { rank: *rank, code: *code },
            _ => FabricError::Aborted { rank, code },
        }
    }

    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.borrow().is_some()
    }

    pub(super) fn take_aborted(&self) -> Option<JobError> {
        self.aborted.take()
    }

    /// Borrows the state. The borrow must not be held while code of a program, a waker or a buffer
    /// type may run.
    #[inline]
    pub(super) fn core(&self) -> RefMut<'_, Core> {
        self.core.borrow_mut()
    }

    /// Takes over `rest`, to poll it along with the rank, or with the helper that detaches it, for
    /// as long as the rank runs.
    pub(super) fn detach(&self, rank: u32, rest: Rest) {
        let lane = self.lane_of(rank);
        let mut core = self.core();
        if core.ranks.status_of(rank) == Some(Status::Running) {
            core.ranks.wake(lane);
            drop(core);
            self.detached.add(lane, rest);
        }
    }

    /// Returns whether a rank or its helpers have detached futures that have not finished.
    pub(super) fn has_detached(&self, rank: u32) -> bool {
        let of_helpers = || self.core().ranks.helpers_of(rank).iter().any(|lane| self.detached.has(*lane));
        self.detached.has(rank) || self.detached.any() && of_helpers()
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns whether the task just polled woke itself, and resets that.
    #[inline]
    pub(super) fn take_again(&self) -> bool {
        self.again.0.load(Relaxed) && self.again.0.swap(false, Relaxed)
    }

    /// Keeps a waker to wake when a lane's task is resumed, unless it is the task's own.
    ///
    /// # Panics
    /// If a `block_on` inside a rank polls: it would park the only thread that could wake it.
    #[inline]
    pub(super) fn listen(&self, lane: u32, cx: &Context<'_>) {
        if !cx.waker().will_wake(&self.waker) {
            self.listen_cold(lane, cx.waker());
        }
    }

    #[cold]
    fn listen_cold(&self, lane: u32, waker: &Waker) {
        assert!(
            blocked_depth() <= self.blocked,
            "block_on of a pending future inside {}, which runs in virtual time: it would block the thread that \
             simulates; await the future instead",
            Rank::new(self.core().ranks.rank_of(lane)),
        );
        let waker = waker.clone();
        // After the borrow has ended: dropping a waker may run code of a program.
        let known = self.core().ranks.listen(lane, waker);
        drop(known);
    }
}

/// The remaining work of a dropped future.
pub(super) type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The remaining work of dropped futures of all ranks: futures without an owner, polled whenever
/// their rank is resumed. They are not part of a rank's state, so that ranks that never detach any
/// cost nothing.
#[derive(Default)]
pub(super) struct Detached {
    /// The futures of each rank or helper, in the order detached. Not borrowed while one of them runs
    /// or is dropped.
    by_rank: RefCell<HashMap<u32, Vec<Rest>>>,
    /// Whether the run has ended, so that nothing is polled any longer.
    closed: Cell<bool>,
}

impl Detached {
    pub(super) fn add(&self, rank: u32, rest: Rest) {
        if !self.closed.get() {
            self.by_rank.borrow_mut().entry(rank).or_default().push(rest);
        }
    }

    /// Returns whether any rank has detached futures.
    #[inline]
    pub(super) fn any(&self) -> bool {
        !self.by_rank.borrow().is_empty()
    }

    pub(super) fn has(&self, rank: u32) -> bool {
        self.by_rank.borrow().contains_key(&rank)
    }

    /// Takes a rank's detached futures, to poll them.
    pub(super) fn take(&self, rank: u32) -> Vec<Rest> {
        self.by_rank.borrow_mut().remove(&rank).unwrap_or_default()
    }

    /// Returns the futures that have not finished. None may have been added since they were taken.
    pub(super) fn keep(&self, rank: u32, rest: Vec<Rest>) {
        if !rest.is_empty() {
            self.by_rank.borrow_mut().insert(rank, rest);
        }
    }

    /// Drops all detached futures, and from now on any that are added.
    pub(super) fn close(&self) {
        self.closed.set(true);
        // Take them out of the borrow first: dropping them may detach more.
        let mut all: Vec<_> = self.by_rank.take().into_iter().collect();
        all.sort_unstable_by_key(|(rank, _)| *rank);
        drop(all);
    }
}
