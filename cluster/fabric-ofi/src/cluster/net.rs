//! The state of a rank in a cluster, shared by its threads: the threads of its program and of its
//! helpers, and the progress thread, which runs while the others compute or sleep.

use super::{
    commands::Bench,
    core::{Core, Phase, State},
    counters::Counters,
    directory::RemoteRegion,
    flight::{Flight, Job},
    link::Link,
    message::{Head, Kind},
    progress::ProgressPolicy,
    registered::RegisteredHeap,
    wait::Patience,
    watched::Watched,
    words::{self, AtomicsBy},
};
use crate::Domain;
use core::{fmt, time::Duration};
use rdma_fabric::{FabricError, Rank, RegionKey, Result, provider::KeepAlive};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};
use tofu2_shm::part::Part;

/// Takes all elements. If there is a single one, the common case, the vector keeps its allocation.
fn taken<T>(all: &mut Vec<T>) -> (Option<T>, Vec<T>) {
    (all.pop(), if all.is_empty() { Vec::new() } else { core::mem::take(all) })
}

/// The receiver of a rank's reports: the component that delivers membership events to it. Its
/// methods are called on any thread of the rank.
pub trait Council: fmt::Debug + Send + Sync {
    /// All operations in flight when [`Member::drain`](super::Member::drain) was called have
    /// completed.
    fn drained(&self, epoch: u64);
    /// This rank aborts the job.
    fn aborted(&self, text: &str, code: i32);
}

/// The shared state of a rank.
pub(super) struct Net {
    /// An id that is unique among the `Net`s of this process.
    pub(super) id: u64,
    pub(super) me: Rank,
    pub(super) part: Part,
    /// Whether each rank is on this node, by rank.
    here: Box<[bool]>,
    pub(super) heap: Arc<RegisteredHeap>,
    pub(super) domain: Domain,
    state: Mutex<State>,
    /// Locked by the thread that works on arrivals. Acquired before `state`.
    pub(super) bench: Mutex<Bench>,
    council: Box<dyn Council>,
    pub(super) progress: ProgressPolicy,
    /// Whether a put is not visible yet, or has failed with an error that is not reported yet.
    has_unreported: AtomicBool,
    pub(super) closing: AtomicBool,
    /// The words that are waited for, with [`AtomicsBy::Nic`].
    pub(super) watched: Option<Arc<Watched>>,
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Net({} of {}, over {}, ", self.me, self.here.len(), self.domain.provider())?;
        match self.state.try_lock() {
            Ok(state) => write!(f, "{})", state.core),
            Err(_) => f.write_str("at work)"),
        }
    }
}

impl Net {
    pub(super) fn new(
        part: Part,
        domain: Domain,
        atomics: AtomicsBy,
        council: Box<dyn Council>,
    ) -> crate::Result<Self> {
        let fabric = part.fabric();
        let here = (0..fabric.ranks() as u32).map(|rank| part.local().contains(&Rank::new(rank))).collect();
        let domain = domain.of_rank(fabric.rank().number());
        let heap = Arc::new(RegisteredHeap::new(domain.clone(), part.heap()));
        let link = Link::open(&domain, &heap)?;
        let watched = match atomics {
            AtomicsBy::Cpu => None,
            AtomicsBy::Nic => Some(Arc::new(words::watched(&link.endpoint)?)),
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        let core = Core::new(id, part.clone(), &link, watched.clone());
        let state = Mutex::new(State { link: Some(link), core });
        let (progress, has_unreported, closing) =
            (ProgressPolicy::default(), AtomicBool::new(false), AtomicBool::new(false));
        let (me, bench) = (fabric.rank(), Mutex::default());
        Ok(Net { id, me, part, here, heap, domain, state, bench, council, progress, has_unreported, closing, watched })
    }

    /// Returns whether a rank runs on another node.
    #[inline]
    pub(super) fn is_remote(&self, rank: Rank) -> bool {
        self.here.get(rank.index()) == Some(&false)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between dependent updates, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state unless another thread holds the lock.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Calls `work` under the lock, and afterwards wakes the collected wakers.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.finish(self.lock(), work)
    }

    fn finish<T>(&self, mut state: MutexGuard<'_, State>, work: impl FnOnce(&mut State) -> T) -> T {
        let done = work(&mut state);
        let core = &mut state.core;
        let (woken, shed, drained) = (taken(&mut core.woken), taken(&mut core.shed), core.has_drained());
        let has_come = !core.arrivals.is_empty();
        // Only the holder of the lock stores this flag.
        if core.has_unreported() != self.has_unreported.load(Relaxed) {
            self.has_unreported.store(core.has_unreported(), Relaxed);
        }
        drop(state);
        drop(shed);
        woken.0.into_iter().chain(woken.1).for_each(core::task::Waker::wake);
        if let Some(epoch) = drained {
            self.council.drained(epoch);
        }
        if has_come {
            self.work_on_arrivals();
        }
        done
    }

    /// Makes progress for peers and for operations in flight, unless another thread does. Returns
    /// the number of events.
    pub(super) fn progress(&self) -> usize {
        self.try_lock().map_or(0, |state| self.finish(state, State::progress))
    }

    /// Returns whether a put posted earlier is not visible yet, or has failed with an error that is
    /// not reported yet. The flag is stored before the post returns, so the posting thread sees it.
    #[inline]
    pub(super) fn has_unreported(&self) -> bool {
        self.has_unreported.load(Relaxed)
    }

    /// Returns whether no operation of this rank is in flight, and all its puts are visible.
    pub(super) fn is_idle(&self) -> bool {
        self.after_polling(|state| {
            state.confirm(None);
            let core = &state.core;
            core.phase == Phase::Broken || core.is_idle() && core.unconfirmed.is_empty()
        })
    }

    /// Waits up to `within` until the operations that are now in flight have completed, but not for
    /// operations that helpers start in the meantime.
    pub(super) fn quiesce_posted(&self, within: Duration) {
        let posted = self.lock().core.flights.those(|_| true);
        let patience = &mut Patience::new();
        while patience.age() < within {
            if self.after_polling(|state| posted.iter().all(|id| state.core.flights.is_complete(*id))) {
                return;
            }
            patience.pause();
        }
    }

    /// Returns the contact data of the endpoint, for the other ranks.
    pub(super) fn contact(&self) -> Vec<u8> {
        self.lock().link.as_ref().map(|link| link.contact()).unwrap_or_default()
    }

    /// Sends this rank's control record, its contribution to a symmetric allocation, to the first
    /// ranks of other nodes.
    pub(super) fn send_control_record(&self, firsts: &[u32], control_record: &[u8]) {
        let head = Head::request(Kind::ControlRecord, self.me.number(), RegionKey::from_bits(0));
        self.with(|state| {
            firsts.iter().for_each(|first| state.core.send_message(*first, head, control_record.to_vec()));
            state.flush_outbox();
        });
    }

    /// Aborts the job.
    pub(super) fn aborted(&self, text: &str, code: i32) {
        self.council.aborted(text, code);
        self.wake_waits();
    }

    pub(super) fn counters(&self) -> Counters {
        self.lock().core.counters
    }

    /// Returns why memory of a rank can't be accessed, if it can't.
    pub(super) fn objection(&self, rank: Rank) -> Option<FabricError> {
        self.part.objection(rank)
    }

    /// Blocks this thread until `look` returns a value, making progress in the meantime.
    ///
    /// # Errors
    /// Those of `look` and of [`Net::objection`].
    pub(super) fn wait<T>(&self, rank: Rank, mut look: impl FnMut(&mut State) -> Result<Option<T>>) -> Result<T> {
        let mut patience = Patience::new();
        loop {
            if let Some(found) = self.after_polling(&mut look)? {
                return Ok(found);
            }
            if let Some(objection) = self.objection(rank) {
                return Err(objection);
            }
            patience.pause();
        }
    }

    /// Sends a request to a rank of another node, and waits for the answer.
    fn request(&self, rank: Rank, job: impl Fn() -> Job, head: Head) -> Result<Flight> {
        let flight = || Flight { wanted: true, ..Flight::new(rank.number(), job()) };
        let id = self.wait(rank, |state| state.request(flight(), head, &[]))?;
        let answered = self.wait(rank, |state| {
            let over = state.core.flights.is_complete(id);
            Ok(over.then(|| state.core.flights.remove(id)))
        });
        match answered {
            Ok(Some(flight)) => Ok(flight),
            Ok(None) => Err(FabricError::PeerLost { rank }),
            Err(error) => {
                self.with(|state| state.core.flights.remove(id));
                Err(error)
            }
        }
    }

    /// Returns a region of another node; looks it up if it is not known.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`], [`FabricError::NoSuchRegion`], [`FabricError::PeerLost`],
    /// [`FabricError::Unsupported`], [`FabricError::System`].
    pub(super) fn region(&self, rank: Rank, key: RegionKey) -> Result<(Arc<RemoteRegion>, KeepAlive)> {
        if let Some(objection) = self.objection(rank) {
            return Err(objection);
        }
        if let Some(known) = self.lock().core.directory.find(rank.number(), key) {
            return Ok(known);
        }
        let flight = self.request(rank, || Job::Locate(key), Head::request(Kind::Locate, self.me.number(), key))?;
        flight.outcome.unwrap_or(Err(FabricError::PeerLost { rank }))?;
        // The region may have been revoked in the meantime.
        let found = self.lock().core.directory.find(rank.number(), key);
        found.ok_or(FabricError::StaleRegion { rank, region: key })
    }

    /// Ends all use of a region of this rank by ranks of other nodes, and waits for this rank's own
    /// operations in it.
    pub(super) fn revoke(&self, key: RegionKey) {
        let holders = self.lock().core.directory.close(key);
        let mut asked = Vec::new();
        for holder in holders.into_iter().map(Rank::new) {
            let head = Head::request(Kind::Revoke, self.me.number(), key);
            let flight = || Flight { wanted: true, ..Flight::new(holder.number(), Job::Ask) };
            // A lost rank no longer uses the region.
            if let Ok(id) = self.wait(holder, |state| state.request(flight(), head, &[])) {
                asked.push((holder, id));
            }
        }
        for (holder, id) in asked {
            let _ = self.wait(holder, |state| Ok(state.core.flights.is_complete(id).then_some(())));
            self.with(|state| state.core.flights.remove(id));
        }
        let _ = self.wait(self.me, |state| {
            let idle = !state.core.directory.is_used(key) || state.core.phase == Phase::Broken;
            Ok(idle.then_some(()))
        });
    }

    /// Returns whether the lock is free.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    /// Suspends the progress thread until the returned guard is dropped.
    #[cfg(test)]
    pub(super) fn hold_progress(&self) -> super::progress::ProgressHold<'_> {
        let hold = self.progress.keep();
        std::thread::sleep(Duration::from_millis(50));
        hold
    }
}
