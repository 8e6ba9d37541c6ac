//! The part that all peers share: the limit of one acquisition of a rank at a time, the flush
//! before a release, and the interface of the locks with which they are compared.

use core::{cell::Cell, fmt, future::Future};
use rdma_fabric::{
    Fabric, FabricError, Group, GroupMemory, LocalWord, PutOrder, Rank, Region, RegionKey, RemoteAddr, RemoteWord,
    Time, error::Literal,
};
use rma_lock::{Fairness, Guard, Lock, LockError, Result, RmaLock};
use std::rc::Rc;

/// The acquire and release protocol of a peer.
pub trait Protocol: Sized + 'static {
    /// The state of a holder.
    type Held: Copy + fmt::Debug + 'static;
    /// As [`Lock::NAME`].
    const NAME: &'static str;
    /// As [`Lock::FAIRNESS`].
    const FAIRNESS: Fairness;
    /// As [`Lock::HOME_WORDS`], in addition to [`Protocol::words_at_home`].
    const HOME_WORDS: usize;

    /// Returns the number of further 8-byte words that exist only at the home, in a job of this
    /// number of ranks.
    fn words_at_home(_ranks: usize) -> usize {
        0
    }

    /// Creates a rank's side.
    ///
    /// # Errors
    /// The errors of the fabric, and [`LockError::TooManyRanks`].
    fn new(rank_state: RankState) -> Result<Self>;

    /// Returns the rank's seat.
    fn rank_state(&self) -> &RankState;

    /// Acquires.
    fn acquire(&self, exclusive: bool) -> impl Future<Output = Result<Self::Held>>;

    /// Releases; the holder's puts are visible already.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<()>>;
}

/// The layout of each rank's symmetric memory: 64 bytes for the home's words, then 64 for its own.
const HOME: u64 = 0;
const OWN: u64 = 64;
const SYMMETRIC: usize = 128;

/// A rank's access to the lock: its fabric, the home, and the words.
pub struct RankState {
    pub(super) fabric: Fabric,
    pub(super) home: Rank,
    memory: GroupMemory,
    /// The memory that exists only at the home.
    beyond: RemoteAddr,
    /// At the home: keeps that memory registered.
    _only_here: Option<Region>,
}

impl fmt::Debug for RankState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "home {}", self.home)
    }
}

impl RankState {
    /// Returns the home's `n`-th word.
    pub(super) fn at_home(&self, n: u64) -> Result<RemoteWord<u64>> {
        Ok(self.fabric.remote_word(self.memory.at(self.home, HOME + 8 * n)?)?)
    }

    /// Returns the address of the `n`-th of the words that exist only at the home.
    pub(super) fn beyond(&self, n: u64) -> RemoteAddr {
        RemoteAddr { offset: self.beyond.offset + 8 * n, ..self.beyond }
    }

    /// Returns this rank's `n`-th word, on which the rank waits.
    pub(super) fn own(&self, n: u64) -> Result<LocalWord<u64>> {
        Ok(self.fabric.local_word(self.memory.at(self.fabric.rank(), OWN + 8 * n)?)?)
    }

    /// Puts a message into the `n`-th word of `rank`.
    pub(super) async fn tell(&self, rank: Rank, n: u64, message: u64) -> Result<()> {
        let word = self.fabric.remote_word::<u64>(self.memory.at(rank, OWN + 8 * n)?)?;
        Ok(self.fabric.put_word(&word, message).await?)
    }

    /// Waits for a message in the rank's own memory, and takes it.
    pub(super) async fn told(&self, word: &LocalWord<u64>) -> Result<u64> {
        let message = self.fabric.wait_until(word, self.memory.deps(), |message| message != 0).await?;
        self.fabric.store(word, 0)?;
        Ok(message)
    }

    /// Returns this rank's identifier, as a word that is not 0.
    pub(super) fn name(&self) -> u64 {
        u64::from(self.fabric.rank().number()) + 1
    }
}

/// Returns the rank of an [identifier](RankState::name) that another rank wrote.
pub(super) fn named(name: u64) -> Rank {
    Rank::new(name.wrapping_sub(1) as u32)
}

/// A peer with the interface of the locks with which it is compared.
///
/// The papers' clients make one request for a lock at a time, and always wait until they have
/// acquired it. So does a rank here, with these limits: while it waits or holds the lock, another
/// acquisition fails with [`LockError::TooManyWaiting`]; a deadline is checked once, before the
/// acquisition begins; there are no try operations; and dropping an incomplete acquisition, or a
/// guard without releasing it, blocks all other ranks forever.
pub struct PeerLock<P>(Rc<Inner<P>>);

struct Inner<P> {
    protocol: P,
    busy: Cell<bool>,
}

impl<P> Clone for PeerLock<P> {
    fn clone(&self) -> Self {
        PeerLock(self.0.clone())
    }
}

impl<P: Protocol> fmt::Debug for PeerLock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?}, busy {})", P::NAME, self.0.protocol.rank_state(), self.0.busy.get())
    }
}

impl<P: Protocol> Inner<P> {
    async fn acquire(self: &Rc<Self>, exclusive: bool, deadline: Time) -> Result<PeerGuard<P>> {
        let fabric = &self.protocol.rank_state().fabric;
        if deadline != Time::MAX && fabric.now() >= deadline {
            return Err(LockError::TimedOut);
        }
        if self.busy.replace(true) {
            return Err(LockError::TooManyWaiting { rank: fabric.rank(), nodes: 1 });
        }
        let held = self.protocol.acquire(exclusive).await?;
        Ok(PeerGuard { lock: self.clone(), held: Some(held) })
    }

    async fn release(&self, held: P::Held) -> Result<()> {
        let fabric = &self.protocol.rank_state().fabric;
        if fabric.caps().put_order < PutOrder::AllTargets {
            fabric.flush_all().await?;
        }
        self.protocol.release(held).await?;
        self.busy.set(false);
        Ok(())
    }
}

/// Proof of holding a [`PeerLock`]. If it is dropped without a release, no other rank ever acquires
/// the lock.
#[must_use = "a guard that is not released keeps everybody out"]
pub struct PeerGuard<P: Protocol> {
    lock: Rc<Inner<P>>,
    held: Option<P::Held>,
}

impl<P: Protocol> fmt::Debug for PeerGuard<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerGuard({:?})", self.held)
    }
}

impl<P: Protocol> Guard for PeerGuard<P> {
    async fn release(mut self) -> Result<()> {
        match self.held.take() {
            Some(held) => self.lock.release(held).await,
            None => Ok(()),
        }
    }
}

fn unsupported(feature: Literal) -> LockError {
    FabricError::Unsupported { feature }.into()
}

impl<P: Protocol> PeerLock<P> {
    fn with(
        fabric: &Fabric,
        memory: GroupMemory,
        home: Rank,
        beyond: RemoteAddr,
        only_here: Option<Region>,
    ) -> Result<Self> {
        let protocol = P::new(RankState { fabric: fabric.clone(), home, memory, beyond, _only_here: only_here })?;
        Ok(PeerLock(Rc::new(Inner { protocol, busy: Cell::new(false) })))
    }
}

impl<P: Protocol> Lock for PeerLock<P> {
    type Options = ();

    const NAME: &'static str = P::NAME;
    const FAIRNESS: Fairness = P::FAIRNESS;
    const HOME_WORDS: usize = P::HOME_WORDS;

    fn bytes((): &(), members: usize) -> usize {
        SYMMETRIC + 8 * P::words_at_home(members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, (): ()) -> Result<Self> {
        let beyond = memory.at(home, SYMMETRIC as u64)?;
        Self::with(fabric, memory, home, beyond, None)
    }

    /// Creates the lock. The memory that exists only at the home is allocated only there.
    async fn symmetric_with(fabric: &Fabric, home: Rank, (): ()) -> Result<Self> {
        fabric.node(home)?;
        let memory = GroupMemory::symmetric(fabric, SYMMETRIC).await?;
        let words = P::words_at_home(fabric.ranks());
        let (mut beyond, mut only_here) = (memory.at(home, 0)?, None);
        if words > 0 {
            let region = if fabric.rank() == home { Some(fabric.alloc(8 * words)?) } else { None };
            let key = region.as_ref().map_or(RegionKey::from_bits(0), |region| region.key());
            let mut world = Group::world(fabric).await?;
            beyond = RemoteAddr { rank: home, region: world.broadcast(home.index(), key).await?, offset: 0 };
            only_here = region;
        }
        Self::with(fabric, memory, home, beyond, only_here)
    }

    fn home(&self) -> Rank {
        self.0.protocol.rank_state().home
    }

    fn fabric(&self) -> &Fabric {
        &self.0.protocol.rank_state().fabric
    }
}

impl<P: Protocol> RmaLock for PeerLock<P> {
    type Shared<'a> = PeerGuard<P>;
    type Exclusive<'a> = PeerGuard<P>;

    async fn read_before(&self, deadline: Time) -> Result<PeerGuard<P>> {
        self.0.acquire(false, deadline).await
    }

    async fn try_read(&self) -> Result<Option<PeerGuard<P>>> {
        Err(unsupported(&"to try a published peer"))
    }

    async fn write_before(&self, deadline: Time) -> Result<PeerGuard<P>> {
        self.0.acquire(true, deadline).await
    }

    async fn try_write(&self) -> Result<Option<PeerGuard<P>>> {
        Err(unsupported(&"to try a published peer"))
    }
}
