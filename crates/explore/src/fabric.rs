//! The provider under an explored program's fabric. It passes every call to a [`Session`].

use crate::{
    act::{Act, Answer},
    awaiting::Waiter,
    cell::Agent,
    dropped::Holding,
    operation::{bits_of, bytes_of},
    session::Session,
};
use rdma_fabric::{
    AccessPolicy, Amo, Atomics, Caps, Fabric, FabricError, Keyring, LockedMemory, Multicasts, Notice, Rank, Region,
    RemoteAddr, Result, Time,
    provider::{
        Boxed, Deferred, Ended, HelperTask, JobFacts, Multicast, Nodes, OneThread, Place, Posted, Protected, Provider,
        Sink, Source, Token, WaitFor, WaitState,
    },
};
use std::{
    fmt,
    ops::Deref,
    rc::Rc,
    slice,
    sync::Arc,
    task::{Context, Poll},
};

/// One rank's access to an explored job. It never leaves its thread.
pub(crate) struct Explored(OneThread<RankHandle>);

/// The contents of [`Explored`].
pub(crate) struct RankHandle {
    pub(crate) session: Rc<Session>,
    /// The protected regions that this handle opens, if it is a handle for protected memory.
    keyring: Option<Keyring>,
    /// Whether it is a helper's.
    of_helper: bool,
}

/// The error of calls in a run that has ended. It is never visible to programs.
pub(crate) const OVER: FabricError = FabricError::Unsupported { feature: &"a run that is over" };

/// Returns the facts of a job, given the node of each rank.
pub(crate) fn facts(nodes: Arc<[u32]>, mut caps: Caps) -> Arc<JobFacts> {
    caps.locked_memory = LockedMemory::Copies;
    caps.third_party_copy = false;
    // The explored network always has atomics.
    caps.atomics = caps.atomics.max(Atomics::Software);
    Arc::new(JobFacts { ranks: nodes.len(), nodes: Nodes::Table(nodes), caps })
}

impl Explored {
    /// Returns the fabric with which a program is run.
    pub(crate) fn fabric(session: &Rc<Session>) -> Fabric {
        Fabric::new(session.rank, session.facts.clone(), Explored::new(session, None, false))
    }

    fn new(session: &Rc<Session>, keyring: Option<Keyring>, of_helper: bool) -> Self {
        Explored(OneThread::new(RankHandle { session: session.clone(), keyring, of_helper }))
    }
}

impl Deref for Explored {
    type Target = RankHandle;

    fn deref(&self) -> &RankHandle {
        &self.0
    }
}

impl fmt::Debug for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Explored({})", self.me())
    }
}

impl RankHandle {
    pub(crate) fn me(&self) -> Rank {
        self.session.rank
    }

    fn ranks(&self) -> usize {
        self.session.facts.ranks
    }

    /// Checks that `rank` is in the job.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub(crate) fn exists(&self, rank: Rank) -> Result<()> {
        let ranks = self.ranks();
        if rank.index() < ranks { Ok(()) } else { Err(FabricError::NoSuchRank { rank, ranks }) }
    }

    /// Checks that this rank has resolved `place`, and that its region has not been dropped.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`], [`FabricError::StaleRegion`].
    pub(crate) fn registered_place(&self, place: &Place) -> Result<()> {
        if !place.has_keep_alive(&self.session.keep_alive) {
            return Err(FabricError::Unsupported { feature: &"a place of another provider" });
        }
        self.registered(place.addr())
    }

    /// Checks that the region of `addr` has not been dropped.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`] if its owner has dropped the region of `addr`.
    pub(crate) fn registered(&self, addr: RemoteAddr) -> Result<()> {
        let holding = Holding::of(addr);
        if self.session.finds_dropped(holding) { Err(holding.stale()) } else { Ok(()) }
    }

    fn alloc_next_symmetric(&self, bytes: usize) -> Result<Region> {
        let ordinal = self.session.next_symmetric_region();
        let terms = self.keyring.as_ref().map_or([0; 3], |ring| ring.next_terms());
        let key = self.session.cells.borrow_mut().alloc_symmetric(self.me(), ordinal, bytes, terms)?;
        if let Some(ring) = &self.keyring {
            ring.add(key);
        }
        Ok(self.region(key, bytes))
    }

    fn load(&self, from: &Place, into: &mut [u8]) -> Result<()> {
        for (part, at) in self.pieces(Agent::Cpu(self.me()), from) {
            let Some(Answer::Value(bits)) = self.session.request(Act::Load(part)) else { return Err(OVER) };
            self.session.continued();
            bytes_of(part, bits, &mut into[at]);
        }
        Ok(())
    }
}

impl Provider for Explored {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        let ordinal = self.session.next_local_region();
        let key = self.session.cells.borrow_mut().alloc(self.me(), ordinal, bytes);
        Ok(self.region(key, bytes))
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move { self.alloc_next_symmetric(bytes) })
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        self.alive(addr.rank)?;
        let cells = self.session.cells.borrow();
        if cells.is_locked(addr.region) && !self.keyring.as_ref().is_some_and(|ring| ring.opens(addr.region)) {
            return Err(FabricError::Locked { rank: addr.rank, region: addr.region });
        }
        cells.locate(self.ranks(), RemoteAddr { offset: 0, ..addr }, 0, 1)?;
        drop(cells);
        self.registered(addr)?;
        self.session.cells.borrow().locate(self.ranks(), addr, len, align)?;
        Ok(Place::remote(addr, len, self.session.keep_alive.clone()))
    }

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        self.registered_place(from)?;
        if waiting { self.watch(from, into) } else { self.load(from, into) }
    }

    fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
        self.registered_place(to)?;
        for (part, at) in self.pieces(Agent::Cpu(self.me()), to) {
            self.session.cells.borrow_mut().store(part.cell);
            self.session.request(Act::Store(part, bits_of(part, &from[at]))).ok_or(OVER)?;
            self.session.continued();
        }
        Ok(())
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        self.post_puts(slice::from_ref(to), from, notice).unwrap_or_else(Posted::failed)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.post_get(from, &to).unwrap_or_else(Posted::failed)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.post_atomic(word, amo).unwrap_or_else(Posted::failed)
    }

    fn nop(&self) -> Posted {
        Posted::Complete(0)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, _: &mut Context<'_>) -> Poll<Result<u64>> {
        self.take(Waiter::from(token.0), into)
    }

    fn test(&self, token: &Token) -> bool {
        self.is_complete(Waiter::from(token.0))
    }

    fn forget(&self, token: Token) {
        self.drop_handle(Waiter::from(token.0));
    }

    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>> {
        if self.of_helper {
            return Err(FabricError::Unsupported { feature: &"notices of a helper" });
        }
        let act = if waiting { Act::NextNotice } else { Act::TryNotice };
        if waiting {
            self.look_after_a_loss()?;
        }
        match self.session.request(act).ok_or(OVER)? {
            Answer::Notice(notice) => {
                self.session.continued();
                Ok(Some(notice))
            }
            _ => {
                if !waiting {
                    self.session.continued();
                }
                Ok(None)
            }
        }
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.awaits(wait_state, wait_for)
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        self.ends_wait(wait_state, wait_for, ended);
    }

    fn now(&self) -> Time {
        let Some(Answer::Value(now)) = self.session.request(Act::Now) else { return Time::ZERO };
        self.session.continued();
        Time::from_picos(now)
    }

    fn detach(&self, deferred: Deferred<'_>) {
        self.session.detach(deferred.boxed());
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        (self.session.facts.caps.multicasts > Multicasts::None).then_some(self)
    }

    fn protected(&self) -> Option<&dyn Protected> {
        Some(self)
    }

    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        if !self.session.facts.caps.helpers {
            return Err(FabricError::Unsupported { feature: &"helpers" });
        }
        let run = task(like.sibling(Explored::new(&self.session, None, true)));
        self.session.start_helper(name, Box::pin(async move { run.await.map_err(|error| error.to_string()) }));
        Ok(())
    }
}

/// A multicast reaches each rank independently, at any moment.
impl Multicast for Explored {
    fn reaches(&self, _: &[Rank]) -> Result<()> {
        Ok(())
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        self.post_puts(to, from, None).unwrap_or_else(Posted::failed)
    }
}

impl Protected for Explored {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        if like.rank() != self.me() {
            return Err(FabricError::Unsupported { feature: &"a handle like that of another rank" });
        }
        Ok(like.sibling(Explored::new(&self.session, Some(Keyring::new(policy)), self.of_helper)))
    }
}
