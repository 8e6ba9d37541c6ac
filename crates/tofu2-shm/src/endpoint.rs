//! One rank of a job: its own state, and the access of other modules to it.

use super::{
    gates::own::OwnGates,
    helpers::Helpers,
    job::{Job, State},
    memory::{
        Mapping,
        allocator::{Allocator, Pages, RegisteredExtent},
        inside::{self, Inside, RegionId},
        layout,
        regions::RegionKind,
    },
    queues::{executor::Executor, own::OwnQueues, progress::ProgressThread},
    waiting::{block_on::PollRequest, wakers::Wakers, watchdog::Awaiting},
};
use core::{
    fmt,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};
use rdma_fabric::{
    Atomics, Caps, Deps, Existing, Fabric, FabricError, Keyring, LockedMemory, Multicasts, PutOrder, Rank, Result,
    Time, access,
    provider::{JobFacts, Nodes},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

/// One rank of a job over shared memory: the provider. Cloning increments a reference count; clones
/// may be used on any thread.
///
/// The posting CPU executes an operation immediately in the target's memory, so it is complete when
/// it has been posted: there is no allocation and no waker. An operation is visible as soon as it
/// is posted, except for the delay of the CPU's store buffer;
/// [`Fabric::flush`](rdma_fabric::Fabric::flush) is a full barrier.
///
/// When the last clone and the last region of a rank have been dropped, the rank has left the job,
/// unless the end of its program was published earlier.
#[derive(Clone)]
pub(crate) struct Endpoint(Arc<Inner>, Option<Arc<Special>>);

/// State that only some handles of a rank have.
#[derive(Debug, Default)]
struct Special {
    /// The regions without keys to which the handle grants access.
    keys: Option<Keyring>,
    /// Whether it is a helper's.
    of_helper: bool,
}

struct Inner {
    rank: Rank,
    job: Arc<Job>,
    /// The rank's own segment.
    segment: Arc<Mapping>,
    allocator: Mutex<Allocator>,
    /// The rank's barrier gates.
    gates: Mutex<OwnGates>,
    /// The announcement words of the segment that are in use, one bit each.
    inside: Arc<AtomicU32>,
    queues: Arc<OwnQueues>,
    /// The count of state changes when the rank last served its session queues.
    served: AtomicU64,
    /// The thread that serves the rank's queues, if it has one.
    progress: OnceLock<ProgressThread>,
    /// Waiting tasks of foreign executors.
    wakers: Wakers,
    helpers: Helpers,
    /// The error that the rank received when it aborted the job, if it has.
    aborted: OnceLock<FabricError>,
    /// The job's facts, shared by the rank's fabrics.
    facts: OnceLock<Arc<JobFacts>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shm::Endpoint({} of {})", self.0.rank, self.0.job.plan.ranks)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let end = if std::thread::panicking() { State::Lost } else { State::Left };
        if self.job.control.state(self.rank.index()) <= State::Running {
            self.job.publish(self.rank, end);
        }
    }
}

impl Endpoint {
    /// Makes the endpoint of `rank`; at most once per rank and job.
    pub(crate) fn new(job: Arc<Job>, rank: Rank, pages: Pages) -> Result<Self> {
        let segment = job.segment(rank)?.clone();
        let allocator = Mutex::new(Allocator::new(segment.heap_len(), pages, job.ranks_here()));
        // Before the state: a rank that runs has a process.
        job.control.control_record(rank.index(), layout::RECORD_PROCESS).store(std::process::id().into(), Relaxed);
        job.publish(rank, State::Running);
        let wakers = Wakers::new(rank.to_string(), segment.clone());
        let (inside, queues) = (Arc::<AtomicU32>::default(), Arc::<OwnQueues>::default());
        let inner = Inner {
            rank,
            job,
            segment,
            allocator,
            gates: Mutex::default(),
            inside,
            queues,
            served: AtomicU64::new(0),
            progress: OnceLock::new(),
            wakers,
            helpers: Helpers::default(),
            aborted: OnceLock::new(),
            facts: OnceLock::new(),
        };
        let endpoint = Endpoint(Arc::new(inner), None);
        if endpoint.job().queues.progress_thread {
            endpoint.start_progress()?;
        }
        Ok(endpoint)
    }

    /// Starts the thread that serves the rank's queues, unless it runs.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(crate) fn start_progress(&self) -> Result<()> {
        let Inner { job, rank, segment, inside, queues, progress, .. } = &*self.0;
        if progress.get().is_none() {
            let thread = ProgressThread::start(job.clone(), *rank, segment.clone(), inside.clone(), queues.clone())?;
            // If another thread of the rank has also started one, one of the two ends again.
            let _ = progress.set(thread);
        }
        Ok(())
    }

    /// Makes the fabric that is passed to programs. In a part of a larger job, references to
    /// protected memory are not allowed: its [`Part`](super::part::Part) resolves such memory for
    /// ranks of other nodes.
    #[allow(unsafe_code)]
    pub(crate) fn fabric(self) -> Fabric {
        let (me, facts) = (self.me(), self.facts().clone());
        if self.job().is_part() {
            return Fabric::new(me, facts, self);
        }
        // SAFETY: atomics are the processor's, acquire and release, so they order all accesses;
        // rank and facts are this rank's own.
        unsafe { Fabric::trusted(me, facts, self) }
    }

    /// Makes another fabric of this handle's rank, with the settings of `like`. References to
    /// protected memory are possible only if the provider of `like` also belongs to this rank,
    /// and its facts are those that this rank has provided, because a layer can be created with any
    /// number and facts.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] if `like` is another rank's.
    #[allow(unsafe_code)]
    pub(crate) fn fabric_like(self, like: &Fabric) -> Result<Fabric> {
        if like.rank() != self.me() {
            return Err(FabricError::Unsupported { feature: &"a handle like that of another rank" });
        }
        let is_own = Endpoint::of(like).is_some_and(|own| own.is_of(&self)) && Arc::ptr_eq(like.facts(), self.facts());
        if !is_own || self.job().is_part() {
            return Ok(like.sibling(self));
        }
        // SAFETY: as in `Endpoint::fabric`; rank and facts of `like` are this rank's own.
        Ok(unsafe { like.trusted_sibling(self) })
    }

    /// Returns the job's facts for this rank: the same value for all of its fabrics.
    fn facts(&self) -> &Arc<JobFacts> {
        self.0.facts.get_or_init(|| Arc::new(self.make_facts()))
    }

    fn make_facts(&self) -> JobFacts {
        let mut caps = Caps::weakest();
        // Puts are plain stores and atomics release: `access`, "Ordering".
        caps.put_order = PutOrder::AllTargets;
        // Only x86-64 is known to preserve the order of copies made by the system as well.
        let by_system = self.job().existing() == Existing::CrossCopy;
        caps.puts_in_order = access::STORES_IN_ORDER && (cfg!(target_arch = "x86_64") || !by_system);
        caps.third_party_copy = true;
        caps.multicasts = Multicasts::Software;
        caps.coherent_atomics = true;
        caps.atomics = Atomics::Hardware;
        caps.notice_bits = 64;
        caps.strong_progress = true;
        caps.immediate = true;
        caps.oversubscribed = self.job().oversubscribed;
        caps.blocking_wait = true;
        caps.register_existing = self.job().existing();
        caps.locked_memory = LockedMemory::Mapped;
        caps.helpers = true;
        caps.max_transfer = u64::MAX;
        let plan = &self.job().plan;
        JobFacts { ranks: plan.ranks, nodes: Nodes::Blocks(plan.ranks_per_node), caps }
    }

    /// Returns the endpoint below a fabric; `None` if the fabric is not a rank over shared memory.
    pub(crate) fn of(fabric: &Fabric) -> Option<&Self> {
        let provider: &dyn core::any::Any = fabric.provider();
        provider.downcast_ref()
    }

    /// Returns the keyring of this handle, which other handles of the rank do not have: the regions
    /// without keys to which it grants access.
    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        self.1.as_ref()?.keys.as_ref()
    }

    /// Returns another handle of the rank, with its own `keys`.
    pub(crate) fn with_keys(&self, keys: Keyring) -> Self {
        let special = Special { keys: Some(keys), of_helper: self.is_of_helper() };
        Endpoint(self.0.clone(), Some(Arc::new(special)))
    }

    /// Returns another handle of the rank, for a helper.
    pub(crate) fn for_helper(&self) -> Self {
        Endpoint(self.0.clone(), Some(Arc::new(Special { keys: None, of_helper: true })))
    }

    /// Returns whether this is a helper's handle.
    #[inline]
    pub(crate) fn is_of_helper(&self) -> bool {
        self.1.as_ref().is_some_and(|special| special.of_helper)
    }

    /// Returns whether both are handles of one rank of one job.
    pub(crate) fn is_of(&self, other: &Endpoint) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Refuses existing memory for handles that access regions without keys.
    pub(crate) fn only_with_keys(&self) -> Result<()> {
        match self.keyring() {
            None => Ok(()),
            Some(_) => Err(FabricError::Unsupported { feature: &"existing protected memory" }),
        }
    }

    pub(crate) fn me(&self) -> Rank {
        self.0.rank
    }

    pub(crate) fn job(&self) -> &Job {
        &self.0.job
    }

    pub(crate) fn segment(&self) -> &Mapping {
        &self.0.segment
    }

    pub(crate) fn allocator(&self) -> MutexGuard<'_, Allocator> {
        // The protected state is consistent between statements, even if other code of the rank
        // panics.
        self.0.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the job. Only the rank's first message is published.
    pub(crate) fn abort_job(&self, text: &str, code: i32) -> FabricError {
        self.0.aborted.get_or_init(|| self.job().abort(self.me(), text, code)).clone()
    }

    pub(crate) fn own_gates(&self) -> MutexGuard<'_, OwnGates> {
        // Consistent after a panic, like the allocator.
        self.0.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wakers(&self) -> &Wakers {
        &self.0.wakers
    }

    pub(crate) fn helpers(&self) -> &Helpers {
        &self.0.helpers
    }

    /// Returns the rank's own segment, to keep it.
    pub(crate) fn kept_segment(&self) -> Arc<Mapping> {
        self.0.segment.clone()
    }

    /// Checks that a wait for `deps` can still succeed.
    ///
    /// # Errors
    /// Those of [`Job::outlook`], and [`FabricError::HelperFailed`].
    pub(crate) fn outlook(&self, deps: &Deps<'_>) -> Result<()> {
        self.helpers().can_continue(self.me())?;
        self.job().outlook(self.me(), deps)
    }

    pub(crate) fn own_queues(&self) -> &OwnQueues {
        &self.0.queues
    }

    /// Returns this rank as an executor of control queues' commands.
    #[inline]
    pub(crate) fn executor(&self) -> Executor<'_> {
        let Inner { job, rank, segment, inside, queues, .. } = &*self.0;
        Executor { job, me: *rank, segment, taken: inside, queues }
    }

    /// Executes the commands that were handed over to this rank, and those that a dead rank should
    /// have executed. Returns whether there may have been any.
    pub(crate) fn serve_queues(&self) -> bool {
        let changes = self.job().control.changes();
        let changed = self.0.served.load(Relaxed) != changes;
        if changed {
            self.0.served.store(changes, Relaxed);
        }
        self.own_queues().serve(&self.executor(), changed) || changed
    }

    /// Returns the request of a wait of this rank to be polled again.
    pub(crate) fn poll_request(&self, awaiting: Awaiting, first: bool) -> PollRequest<'_> {
        let (job, segment) = (self.job(), &self.0.segment);
        PollRequest {
            segment,
            awaiting,
            first,
            oversubscribed: job.oversubscribed,
            longest: job.longest_park(),
            until: None,
        }
    }

    /// Returns whether there is no other handle of this rank's fabric.
    pub(crate) fn has_no_other_handle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Declares that only the rank's program acts for the rank, run by one [`super::block_on`].
    pub(crate) fn seal(&self) {
        self.0.segment.word(layout::SEALED).store(1, SeqCst);
    }

    /// Announces an operation of this rank inside regions, until the returned value is dropped.
    pub(crate) fn announce<const N: usize>(&self, ids: [RegionId; N]) -> Inside<'_, AtomicU64, N> {
        inside::announce(self.0.segment.announcements(), &self.0.inside, ids, std::thread::yield_now)
    }

    /// Takes an extent of this rank's segment, fills it by calling `fill` with its offset, and
    /// registers it. If only retired memory is left, this waits for the end of its grace period.
    pub(crate) fn take_extent(
        &self,
        bytes: usize,
        kind: RegionKind,
        fill: impl Fn(&Mapping, usize),
    ) -> Result<RegisteredExtent> {
        self.take(|allocator| {
            allocator.alloc(&self.0.segment, self.me(), bytes, kind, |offset| fill(&self.0.segment, offset))
        })
    }

    /// Takes an extent like [`Endpoint::take_extent`], for a region of an access policy with these
    /// terms.
    pub(crate) fn take_policy_extent(&self, bytes: usize, terms: [u64; 3]) -> Result<RegisteredExtent> {
        self.take(|allocator| allocator.alloc_policy(&self.0.segment, self.me(), bytes, terms))
    }

    fn take(&self, alloc: impl Fn(&mut Allocator) -> Result<RegisteredExtent>) -> Result<RegisteredExtent> {
        let attempt = || {
            let mut allocator = self.allocator();
            allocator.settle(self.job(), &self.0.segment);
            (alloc(&mut allocator), allocator.grace_end())
        };
        loop {
            match attempt() {
                (Err(FabricError::OutOfMemory(_)), Some(until)) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                }
                (taken, _) => return taken,
            }
        }
    }

    /// Converts a time to the system's clock; `None` if that is out of range.
    pub(crate) fn instant(&self, at: Time) -> Option<Instant> {
        self.job().start().checked_add(Duration::from_nanos(at.as_picos().div_ceil(1000)))
    }
}
