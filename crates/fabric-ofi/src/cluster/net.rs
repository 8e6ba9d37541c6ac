//! A rank's share in a cluster, as its threads use it: its program, its helpers, and the thread that
//! works while these compute or sleep.

use super::{
    attention::Attention,
    commands::Bench,
    core::{Core, Phase, State},
    counters::Counters,
    directory::FarRegion,
    flight::{Flight, Job},
    link::Link,
    message::{Head, Kind},
    wait::Patience,
    watched::Watched,
    words::{self, AtomicsBy},
};
use crate::Domain;
use core::{fmt, time::Duration};
use rdma_fabric::{FabricError, Rank, RegionKey, Result, provider::Anchor};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};
use tofu2_sim::shm::part::{Heap, Part};

/// Takes all out; of a single one, as there is most often, the vector keeps its memory.
fn taken<T>(all: &mut Vec<T>) -> (Option<T>, Vec<T>) {
    (all.pop(), if all.is_empty() { Vec::new() } else { core::mem::take(all) })
}

/// What a rank tells those who bring it the news of other ranks, from any thread of the rank.
pub trait Council: fmt::Debug + Send + Sync {
    /// All that was under way when [`Member::drain`](super::Member::drain) was called is over.
    fn drained(&self, epoch: u64);
    /// This rank ends the whole job.
    fn aborted(&self, text: &str, code: i32);
}

/// A rank's share.
pub(super) struct Net {
    /// A number that no other share of this process has.
    pub(super) id: u64,
    pub(super) me: Rank,
    pub(super) part: Part,
    /// The ranks of this node, by rank.
    here: Box<[bool]>,
    pub(super) heap: Heap,
    pub(super) domain: Domain,
    state: Mutex<State>,
    /// Locked by whoever works on arrivals. Taken before `state`.
    pub(super) bench: Mutex<Bench>,
    council: Box<dyn Council>,
    pub(super) attention: Attention,
    /// Whether a put is not visible, or has failed and nobody was told.
    owes: AtomicBool,
    pub(super) closing: AtomicBool,
    /// What is waited for, if libfabric's atomics work on words.
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
        let heap = part.heap();
        let link = Link::open(&domain, &heap)?;
        let watched = match atomics {
            AtomicsBy::Cpu => None,
            AtomicsBy::Nic => Some(Arc::new(words::watched(&link.endpoint)?)),
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        let core = Core::new(id, part.clone(), link.door, watched.clone());
        let state = Mutex::new(State { link: Some(link), core });
        let (attention, owes, closing) = (Attention::default(), AtomicBool::new(false), AtomicBool::new(false));
        let (me, bench) = (fabric.rank(), Mutex::default());
        Ok(Net { id, me, part, here, heap, domain, state, bench, council, attention, owes, closing, watched })
    }

    /// Returns whether a rank runs on another node.
    #[inline]
    pub(super) fn is_far(&self, rank: Rank) -> bool {
        self.here.get(rank.index()) == Some(&false)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between statements that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` under the lock, and afterwards those that it woke.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.finish(self.lock(), work)
    }

    fn finish<T>(&self, mut state: MutexGuard<'_, State>, work: impl FnOnce(&mut State) -> T) -> T {
        let done = work(&mut state);
        let core = &mut state.core;
        let (woken, shed, drained) = (taken(&mut core.woken), taken(&mut core.shed), core.has_drained());
        let has_come = !core.arrivals.is_empty();
        // Only who has the lock stores it.
        if core.owes() != self.owes.load(Relaxed) {
            self.owes.store(core.owes(), Relaxed);
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

    /// Works a little for peers and for what is under way, unless another thread does. Returns how
    /// much there was to do.
    pub(super) fn progress(&self) -> usize {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        self.finish(state, State::progress)
    }

    /// Returns whether a put that was posted before is not visible, or has failed and nobody was told:
    /// whoever has posted one has seen that stored.
    #[inline]
    pub(super) fn owes(&self) -> bool {
        self.owes.load(Relaxed)
    }

    /// Returns whether nothing of this rank is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.looking(|state| state.core.phase == Phase::Broken || state.core.is_idle())
    }

    /// Waits, up to this long, until what is under way now is over; not for what helpers begin
    /// meanwhile.
    pub(super) fn settle_posted(&self, within: Duration) {
        let posted = self.lock().core.flights.those(|_| true);
        let patience = &mut Patience::new();
        while patience.age() < within {
            if self.looking(|state| posted.iter().all(|id| state.core.flights.is_over(*id))) {
                return;
            }
            patience.rest();
        }
    }

    /// Returns what others must know of the endpoint.
    pub(super) fn contact(&self) -> Vec<u8> {
        self.lock().link.as_ref().map(|link| link.contact()).unwrap_or_default()
    }

    /// Tells the first ranks of other nodes what this rank says when all allocate together.
    pub(super) fn tell_card(&self, firsts: &[u32], card: &[u8]) {
        let head = Head::ask(Kind::Card, self.me.number(), RegionKey::from_bits(0));
        self.with(|state| {
            firsts.iter().for_each(|first| state.core.tell(*first, head, card.to_vec()));
            state.flush_outbox();
        });
    }

    /// Ends the whole job.
    pub(super) fn aborted(&self, text: &str, code: i32) {
        self.council.aborted(text, code);
        self.rouse();
    }

    pub(super) fn counters(&self) -> Counters {
        self.lock().core.counters
    }

    /// Returns why nothing can be done with a rank's memory, if nothing can.
    pub(super) fn objection(&self, rank: Rank) -> Option<FabricError> {
        self.part.objection(rank)
    }

    /// Waits on this thread until `look` finds something. It makes progress meanwhile.
    ///
    /// # Errors
    /// Those of `look`; those of [`Net::objection`].
    pub(super) fn wait<T>(&self, rank: Rank, mut look: impl FnMut(&mut State) -> Result<Option<T>>) -> Result<T> {
        let mut patience = Patience::new();
        loop {
            if let Some(found) = self.looking(&mut look)? {
                return Ok(found);
            }
            if let Some(objection) = self.objection(rank) {
                return Err(objection);
            }
            patience.rest();
        }
    }

    /// Asks a rank of another node, and waits for the answer.
    fn ask(&self, rank: Rank, job: impl Fn() -> Job, head: Head) -> Result<Flight> {
        let flight = || Flight { wanted: true, ..Flight::new(rank.number(), job()) };
        let id = self.wait(rank, |state| state.ask(flight(), head, &[]))?;
        let answered = self.wait(rank, |state| {
            let over = state.core.flights.is_over(id);
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

    /// Returns a region of another node, looked up if it is not known.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`], [`FabricError::NoSuchRegion`], [`FabricError::PeerLost`],
    /// [`FabricError::Unsupported`], [`FabricError::System`].
    pub(super) fn region(&self, rank: Rank, key: RegionKey) -> Result<(Arc<FarRegion>, Anchor)> {
        if let Some(objection) = self.objection(rank) {
            return Err(objection);
        }
        if let Some(known) = self.lock().core.directory.find(rank.number(), key) {
            return Ok(known);
        }
        let flight = self.ask(rank, || Job::Locate(key), Head::ask(Kind::Locate, self.me.number(), key))?;
        flight.outcome.unwrap_or(Err(FabricError::PeerLost { rank }))?;
        // It may have been revoked since.
        let found = self.lock().core.directory.find(rank.number(), key);
        found.ok_or(FabricError::StaleRegion { rank, region: key })
    }

    /// Ends all use of a region of this rank by ranks of other nodes, and waits for what this rank
    /// itself has under way in it.
    pub(super) fn revoke(&self, key: RegionKey) {
        let holders = self.lock().core.directory.close(key);
        let mut asked = Vec::new();
        for holder in holders.into_iter().map(Rank::new) {
            let head = Head::ask(Kind::Revoke, self.me.number(), key);
            let flight = || Flight { wanted: true, ..Flight::new(holder.number(), Job::Ask) };
            // Who is lost uses it no more.
            if let Ok(id) = self.wait(holder, |state| state.ask(flight(), head, &[])) {
                asked.push((holder, id));
            }
        }
        for (holder, id) in asked {
            let _ = self.wait(holder, |state| Ok(state.core.flights.is_over(id).then_some(())));
            self.with(|state| state.core.flights.remove(id));
        }
        let _ = self.wait(self.me, |state| {
            let idle = !state.core.directory.is_used(key) || state.core.phase == Phase::Broken;
            Ok(idle.then_some(()))
        });
    }

    /// Returns whether nobody has the lock.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    /// Lets the thread that works for peers rest until what it returns is dropped.
    #[cfg(test)]
    pub(super) fn keep_attended(&self) -> super::attention::Kept<'_> {
        let kept = self.attention.keep();
        std::thread::sleep(Duration::from_millis(50));
        kept
    }
}
