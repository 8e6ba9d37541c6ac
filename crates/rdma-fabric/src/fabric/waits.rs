//! Waits: their dependencies and conditions, time, and the remaining work of dropped futures.

use super::{
    Fabric,
    wait_future::{CheckFuture, NoticeCheck, TimeFuture, WaitFuture, WordCheck},
};
use crate::{
    AtomicWord, LocalWord, Notice, Rank, Result, Time,
    join::{Either, map, race},
    provider::{Deferred, WaitFor},
};
use core::{future::Future, marker::PhantomData, time::Duration};

/// The ranks without which a wait can't end.
///
/// The loss of any of them ends the wait with [`crate::FabricError::PeerLost`]; when all of them
/// have finished their programs, it ends with [`crate::FabricError::PeersLeft`]. The smaller the
/// set, the less often the death of an uninvolved rank affects the wait.
#[derive(Clone, Copy, Debug, Default)]
pub enum Deps<'a> {
    /// Every other rank of the job: the safe default.
    #[default]
    All,
    /// One rank.
    One(Rank),
    /// These ranks.
    Ranks(&'a [Rank]),
    /// A step of a group's collective: only `writer` can end the wait, and it in turn waits for
    /// others of the group. The loss of any of them ends the wait with
    /// [`crate::FabricError::PeerLost`]; once the writer has finished, the wait ends with
    /// [`crate::FabricError::PeersLeft`], no matter which other ranks are still there.
    Step {
        /// The rank that writes the awaited word.
        writer: Rank,
        /// The ranks of the group; `None` means every other rank of the job.
        group: Option<&'a [Rank]>,
    },
}

impl Deps<'_> {
    /// Returns whether `rank` is in the set, as seen from `me` (under [`Deps::All`] no rank depends
    /// on itself).
    pub fn contains(&self, rank: Rank, me: Rank) -> bool {
        match self {
            Deps::All => rank != me,
            Deps::One(one) => *one == rank,
            Deps::Ranks(ranks) => ranks.contains(&rank),
            Deps::Step { writer, group } => *writer == rank || group.map_or(rank != me, |ranks| ranks.contains(&rank)),
        }
    }
}

impl Fabric {
    /// Waits until posting can be retried: for room in this rank's queue and, if `target` is given,
    /// in its notice queue. A rank's own queue serves waiters first come, first served; the caller
    /// posts immediately afterwards. No order is guaranteed among ranks that wait for room in a
    /// target's notice queue.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`] of the target; [`crate::FabricError::PeersLeft`] if it has
    /// left and its notice queue is full.
    pub fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        WaitFuture::new(self, move || WaitFor::Room(target))
    }

    /// Waits until every put posted to `target` so far is visible there.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`], [`crate::FabricError::NoSuchRank`], or the first error
    /// that any of those puts encountered at its target since the last flush of that target.
    #[inline]
    pub fn flush(&self, target: Rank) -> impl Future<Output = Result<()>> {
        WaitFuture::new(self, move || WaitFor::Flush(Some(target)))
    }

    /// Waits until every put posted so far, to any target, is visible there.
    ///
    /// # Errors
    /// As [`Fabric::flush`].
    #[inline]
    pub fn flush_all(&self) -> impl Future<Output = Result<()>> {
        WaitFuture::new(self, || WaitFor::Flush(None))
    }

    /// Returns true if it is certain that every put posted so far is visible and that no put has an
    /// error that has not been reported, so that a flush is not needed. `false` does not imply
    /// anything.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.provider().is_flushed()
    }

    /// Waits until a word of this rank's own memory satisfies `until`, and returns its value.
    ///
    /// All writes that were visible to the writer when it wrote that value are visible to the
    /// caller (acquire).
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`], [`crate::FabricError::PeersLeft`],
    /// [`crate::FabricError::Deadlock`], [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let check = WordCheck { word: word.place(), until, of: PhantomData };
        CheckFuture::new(self, WaitFor::Word(word.place(), deps), check).await
    }

    /// Takes the next notice, if one has arrived.
    ///
    /// # Errors
    /// [`crate::FabricError::Corrupt`].
    #[inline]
    pub fn try_notice(&self) -> Result<Option<Notice>> {
        self.provider().try_notice(false)
    }

    /// Waits for the next notice. Notices of one poster arrive in posting order.
    ///
    /// # Errors
    /// As [`Fabric::wait_until`].
    #[inline(always)]
    pub async fn next_notice(&self, deps: Deps<'_>) -> Result<Notice> {
        CheckFuture::new(self, WaitFor::Notice(deps), NoticeCheck).await
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.provider().now()
    }

    /// Waits for `duration`.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> {
        self.sleep_until(self.now() + duration)
    }

    /// Waits until `at`.
    pub fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        TimeFuture(WaitFuture::new(self, move || WaitFor::Until(at)))
    }

    /// Runs `future` until it is ready or the time `at` is reached; in the latter case drops it
    /// unfinished and returns `None`. Every protocol documents the effect of dropping its futures.
    pub fn before<T: Future>(&self, at: Time, future: T) -> impl Future<Output = Option<T::Output>> {
        map(race(future, self.sleep_until(at)), |ended| match ended {
            Either::First(out) => Some(out),
            Either::Second(()) => None,
        })
    }

    /// Keeps this rank's CPU busy for `duration`: virtual time passes, wall-clock time does not
    /// (real work takes its own time).
    pub fn compute(&self, duration: Duration) -> impl Future<Output = ()> {
        TimeFuture(WaitFuture::new(self, move || WaitFor::Busy(duration)))
    }

    /// Accounts for one pass through a named software layer. Virtual time charges the time that the
    /// platform's table lists for it (nothing if the name is unknown); in wall-clock time it is
    /// free.
    pub fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        self.charge_bytes(layer, 0)
    }

    /// Accounts for one pass of `bytes` bytes through a named software layer that copies, packs or
    /// combines them. Virtual time charges the layer's time for each of the bytes, or, if the
    /// platform's table lists a time per pass, that time ([`Fabric::charge`]); in wall-clock time
    /// it is free.
    ///
    /// ```
    /// # use rdma_fabric::{Fabric, LocalSpan, Result};
    /// /// Copies a message into a buffer of the library's.
    /// async fn keep(fabric: &Fabric, message: &[u8], buffer: &LocalSpan<u8>) -> Result<()> {
    ///     fabric.write(&buffer.slice(0..message.len())?, message)?;
    ///     fabric.charge_bytes("copy", message.len()).await;
    ///     Ok(())
    /// }
    /// ```
    pub fn charge_bytes(&self, layer: &'static str, bytes: usize) -> impl Future<Output = ()> {
        TimeFuture(WaitFuture::new(self, move || WaitFor::Charge(layer, bytes)))
    }

    /// Runs `rest` to completion as part of this rank without an awaiting caller: the work that a
    /// dropped future still has to complete for other ranks. The rank does not end before `rest`
    /// does.
    ///
    /// `rest` may post operations, await their handles and flush. It must not wait for words,
    /// notices, room in a target's notice queue or time: everything it awaits must complete without
    /// an action of another rank. A provider whose operations complete when posted polls `rest`
    /// once, in this call; if `rest` is then not ready, this is reported on standard error and
    /// `rest` is dropped (and a debug assertion fails). Called for a rank that has already ended,
    /// it drops `rest`.
    #[inline]
    pub fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.provider().detach(Deferred::new(&mut Some(rest)));
    }
}
