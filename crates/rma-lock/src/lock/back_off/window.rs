//! The two-level lock: a word for each rank, and one for all ranks.

use super::{
    attempt::{Base, Claim, Claims, WordClaim, acquire, release, release_unawaited, try_acquire},
    pace::BackOff,
};
use crate::{Access, AccessLock, Fairness, Guard, Lock, Result, RmaLock};
use core::{fmt, future::Future};
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteWord, Time, provider::Boxed};
use std::sync::Arc;

/// A rank's own word.
const OWN: u64 = 0;
/// The word of the second level, at the home, on another cache line.
const ALL: u64 = 64;
const LOCK_BYTES: usize = 128;

/// The lock of a window: each rank's memory can be locked separately, shared or exclusively, and
/// the memory of all ranks together, shared.
///
/// Exclusive accesses to different ranks do not interfere. An access to all ranks is one atomic,
/// regardless of the number of ranks; in exchange an exclusive access must check at the home for
/// such an access. As a [`RmaLock`] its readers access all ranks and its writers the home.
///
/// Uncontended remote operations: [`Access::All`] and [`Access::Shared`] 1 atomic to lock and 1 to
/// unlock, [`Access::Exclusive`] 2 and 2, one at the rank and one at the home. A failed attempt
/// costs 2; an exclusive attempt costs 2 if it conflicts with a holder of all ranks, and 3 if it
/// conflicts with a holder of the rank.
///
/// The limit of [`crate::LockError::TooManyHolders`] counts the holders of all ranks, and those of
/// any rank exclusively. A try may also fail because of a rank whose own attempt is about to fail.
/// No rank is guaranteed to take the lock. Errors, deaths and dropped futures are handled as in
/// [`crate::locks::BackOffLock`]; the loss of the rank whose memory is to be locked is also
/// [`rdma_fabric::FabricError::PeerLost`], and leaves no trace at the home.
#[derive(Clone)]
pub struct WindowLock {
    base: Arc<Base>,
    all: RemoteWord<u64>,
}

impl fmt::Debug for WindowLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowLock({:?})", self.base)
    }
}

impl WindowLock {
    fn enter(&self, access: Access, deadline: Time) -> Boxed<'_, Result<WindowGuard<'_>>> {
        Box::pin(async move {
            let claims = self.claims(access)?;
            acquire(&self.base, claims.clone(), None, deadline).await?;
            Ok(WindowGuard { lock: self, access, held: Some(claims) })
        })
    }

    fn try_enter(&self, access: Access) -> Boxed<'_, Result<Option<WindowGuard<'_>>>> {
        Box::pin(async move {
            let claims = self.claims(access)?;
            let entered = try_acquire(&self.base, claims.clone(), None).await?;
            Ok(entered.then(|| WindowGuard { lock: self, access, held: Some(claims) }))
        })
    }

    /// Returns the claims of an access. The claim at the home comes first: a holder of a rank's
    /// word never waits.
    fn claims(&self, access: Access) -> Result<Claims> {
        let all = |claim| WordClaim { word: self.all.clone(), claim };
        let own = |rank, claim| -> Result<_> {
            Ok(WordClaim { word: self.base.fabric.remote_word(self.base.memory.at(rank, OWN)?)?, claim })
        };
        Ok(match access {
            Access::All => Arc::new([all(Claim::EVERYWHERE)]),
            Access::Shared(rank) => Arc::new([own(rank, Claim::READ)?]),
            Access::Exclusive(rank) => Arc::new([all(Claim::SOMEWHERE), own(rank, Claim::WRITE)?]),
        })
    }
}

/// Access to one rank's memory, or to that of all ranks, through a [`WindowLock`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct WindowGuard<'a> {
    lock: &'a WindowLock,
    access: Access,
    /// Resolved in advance: a lost rank can no longer be resolved, but the home's word must still
    /// be released. `None` after that.
    held: Option<Claims>,
}

impl fmt::Debug for WindowGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.access, self.lock)
    }
}

impl WindowGuard<'_> {
    /// Returns the access that is held.
    pub fn access(&self) -> Access {
        self.access
    }
}

impl Drop for WindowGuard<'_> {
    fn drop(&mut self) {
        if let Some(claims) = self.held.take() {
            release_unawaited(&self.lock.base, claims, None);
        }
    }
}

impl Guard for WindowGuard<'_> {
    fn release(mut self) -> impl Future<Output = Result<()>> {
        Box::pin(async move {
            let base = &self.lock.base;
            let flushed = base.flush_data().await;
            let left = match self.held.take() {
                Some(claims) => release(base, claims, None).await,
                None => Ok(()),
            };
            left.and(flushed)
        })
    }
}

impl Lock for WindowLock {
    type Options = BackOff;

    const NAME: &'static str = "two-level back-off";
    const FAIRNESS: Fairness = Fairness::Barging;
    const HOME_WORDS: usize = 2;

    fn bytes(_: &BackOff, _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: BackOff) -> Result<Self> {
        let memory = memory.part(0, LOCK_BYTES)?;
        let all = fabric.remote_word(memory.at(home, ALL)?)?;
        let base = Base::over(fabric, memory, home, options)?;
        Ok(WindowLock { base: Arc::new(base), all })
    }

    fn home(&self) -> Rank {
        self.base.home
    }

    fn fabric(&self) -> &Fabric {
        &self.base.fabric
    }
}

impl AccessLock for WindowLock {
    type Guard<'a> = WindowGuard<'a>;

    fn lock_before(&self, access: Access, deadline: Time) -> impl Future<Output = Result<WindowGuard<'_>>> {
        self.enter(access, deadline)
    }

    fn try_lock(&self, access: Access) -> impl Future<Output = Result<Option<WindowGuard<'_>>>> {
        self.try_enter(access)
    }
}

impl RmaLock for WindowLock {
    type Shared<'a> = WindowGuard<'a>;
    type Exclusive<'a> = WindowGuard<'a>;

    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<WindowGuard<'_>>> {
        self.lock_before(Access::All, deadline)
    }

    fn try_read(&self) -> impl Future<Output = Result<Option<WindowGuard<'_>>>> {
        self.try_lock(Access::All)
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WindowGuard<'_>>> {
        self.lock_before(Access::Exclusive(self.base.home), deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<WindowGuard<'_>>>> {
        self.try_lock(Access::Exclusive(self.base.home))
    }
}
