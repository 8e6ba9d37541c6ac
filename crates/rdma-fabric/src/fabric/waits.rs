//! Waits, time, and what dropped futures owe.

use super::{
    Fabric,
    waiting::{Busy, Charge, Finding, Flush, NoticeLook, Passing, Reaching, Room, Until, WordLook},
};
use crate::{
    AtomicWord, Deps, LocalWord, Notice, Rank, Result, Time,
    join::{Either, race},
    provider::{Goal, Leftover},
};
use core::{future::Future, marker::PhantomData, time::Duration};

impl Fabric {
    /// Wait until posting is worth another try: own queue, and `target`'s notice queue if given. First
    /// come, first served in own queues; the caller posts at once after it. No order is promised among those
    /// that want room in a target's notice queue.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`] of the target; [`crate::FabricError::PeersLeft`] if it has left and its notice queue is full.
    pub fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        Reaching::new(self, Room(target))
    }

    /// Wait until every put posted to `target` before is visible there.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`], [`crate::FabricError::NoSuchRank`], or the first error that one of those puts
    /// met at its target since the last flush of it.
    #[inline]
    pub fn flush(&self, target: Rank) -> impl Future<Output = Result<()>> {
        Reaching::new(self, Flush(Some(target)))
    }

    /// [`Fabric::flush`] for all targets.
    ///
    /// # Errors
    /// As [`Fabric::flush`].
    #[inline]
    pub fn flush_all(&self) -> impl Future<Output = Result<()>> {
        Reaching::new(self, Flush(None))
    }

    /// Wait until a word of own memory satisfies `until`, and return it.
    ///
    /// What was visible when the writer wrote that value is visible to the caller (acquire).
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`], [`crate::FabricError::PeersLeft`], [`crate::FabricError::Deadlock`], [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let look = WordLook { word: word.place(), until, of: PhantomData };
        Finding::new(self, Goal::Word(word.place(), deps), look).await
    }

    /// The next notice, if one is here.
    ///
    /// # Errors
    /// [`crate::FabricError::Corrupt`].
    #[inline]
    pub fn try_notice(&self) -> Result<Option<Notice>> {
        self.provider().try_notice(false)
    }

    /// Wait for the next notice. Notices of one poster arrive in posting order.
    ///
    /// # Errors
    /// As [`Fabric::wait_until`].
    #[inline(always)]
    pub async fn next_notice(&self, deps: Deps<'_>) -> Result<Notice> {
        Finding::new(self, Goal::Notice(deps), NoticeLook).await
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.provider().now()
    }

    /// Wait for `duration`.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> {
        self.sleep_until(self.now() + duration)
    }

    /// Wait until `at`.
    pub fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        Passing(Reaching::new(self, Until(at)))
    }

    /// Run `future` until it is done or `at` has come; `None` drops it unfinished. What dropping means
    /// is part of every protocol's documentation.
    pub async fn before<T: Future>(&self, at: Time, future: T) -> Option<T::Output> {
        match race(future, self.sleep_until(at)).await {
            Either::First(out) => Some(out),
            Either::Second(()) => None,
        }
    }

    /// Let this rank's CPU be busy for `duration`: virtual time passes, wall-clock time does not (real work
    /// takes its own).
    pub fn compute(&self, duration: Duration) -> impl Future<Output = ()> {
        Passing(Reaching::new(self, Busy(duration)))
    }

    /// Account for one pass through a named software layer. Virtual time charges what the platform's
    /// table says for it (nothing if it doesn't know the name); on wall clock it is free.
    pub fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        Passing(Reaching::new(self, Charge(layer)))
    }

    /// Run `rest` to its end as part of this rank, though nobody awaits it: what a future that is being dropped still
    /// owes others. The rank has not ended before `rest` has.
    ///
    /// `rest` may post operations, await their handles and flush. It must not wait for words, notices, room in a
    /// target's notice queue or time: what it awaits must come by itself. A provider whose operations are over when
    /// they are posted polls it once, here; one that is not over then is reported on standard error and dropped (and
    /// fails a debug assertion). Called for a rank that has ended already, it drops `rest`.
    #[inline]
    pub fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.provider().detach(Leftover::new(&mut Some(rest)));
    }
}
