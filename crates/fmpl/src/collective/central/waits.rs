//! Waits for words of this member, which other members may end by leaving.

use super::{Central, tally::Tally};
use crate::{Communicator, FmplError, Result};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use rdma_fabric::{
    Deps, FabricError, LocalWord,
    join::{Either, map, race},
};

/// The number of turns of other ranks before a longer wait.
pub(super) const TURNS: u32 = 8;

impl Central {
    /// Waits until a word of this member, which the last member to pass `mark` writes, reaches `end`.
    pub(super) async fn reaches(
        &self,
        comm: &Communicator,
        word: &LocalWord<u64>,
        end: u64,
        (tally, mark): (&Tally, u64),
    ) -> Result<()> {
        let (fabric, group) = (&comm.fabric, comm.listed.as_deref());
        if self.soon(comm, word, |value| value >= end).await {
            return Ok(());
        }
        loop {
            if fabric.load(word)? >= end {
                return Ok(());
            }
            let gone = fabric.load(&tally.gone)?;
            let missing = match gone {
                0 => match tally.missing(fabric, mark).await {
                    Ok(missing) => missing,
                    // Member 0 drops its memory: its last mark is in flight.
                    Err(error) if is_dropped(&error) => Some(0),
                    Err(error) => return Err(error),
                },
                // All have passed the mark: the write is in flight.
                _ if gone > mark => None,
                _ => Some(0),
            };
            let deps = match missing {
                Some(member) => Deps::Step { writer: comm.rank(member)?, group },
                None => group.map_or(Deps::All, Deps::Ranks),
            };
            let written = fabric.wait_until(word, deps, |value| value >= end);
            let other = fabric.wait_until(&tally.gone, deps, |now| now != gone);
            let left = self.unless_left(comm, deps, map(Box::pin(race(written, other)), either)).await?;
            if fabric.load(word)? >= end {
                return Ok(());
            }
            if let Some(member) = left {
                return Err(FmplError::MemberLeft { member });
            }
            let leaver = match (fabric.load(&tally.gone)?, missing) {
                // It may have passed the mark before it finished.
                (0, Some(member)) if member > 0 => match tally.missing(fabric, mark).await {
                    Ok(missing) => missing.filter(|missing| *missing == member),
                    Err(error) if is_dropped(&error) => None,
                    Err(error) => return Err(error),
                },
                // All have finished, and the write did not come.
                (now, None) if now == gone => Some(0),
                (now, _) => (now <= mark).then_some(0),
            };
            if let Some(member) = leaver {
                return Err(FmplError::MemberLeft { member });
            }
        }
    }

    /// Waits for a word of this member for [`TURNS`] turns of the ranks that share its CPU, before the wait is
    /// prepared in which leaving members are noticed. Returns whether it was written.
    pub(super) async fn soon(&self, comm: &Communicator, word: &LocalWord<u64>, until: impl Fn(u64) -> bool) -> bool {
        if !self.shares_cpus {
            return false;
        }
        let deps = comm.listed.as_deref().map_or(Deps::All, Deps::Ranks);
        let (mut wait, mut turns) = (pin!(comm.fabric.wait_until(word, deps, until)), 0);
        poll_fn(|cx| match wait.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(ended.is_ok()),
            Poll::Pending if turns == TURNS => Poll::Ready(false),
            Poll::Pending => {
                turns += 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await
    }

    /// Waits for a word of this member, or until a member leaves, which is returned, or those on which
    /// the wait depends finish.
    pub(super) async fn unless_left(
        &self,
        comm: &Communicator,
        deps: Deps<'_>,
        written: impl Future<Output = Result<u64, FabricError>> + Unpin,
    ) -> Result<Option<usize>> {
        let left = comm.fabric.wait_until(&self.left, deps, |word| self.leaver(word).is_some());
        match comm.progressing(race(written, left)).await {
            Either::First(Ok(_)) => Ok(None),
            Either::Second(Ok(word)) => Ok(self.leaver(word)),
            Either::First(Err(FabricError::PeersLeft)) | Either::Second(Err(FabricError::PeersLeft)) => {
                Ok(self.leaver(comm.fabric.load(&self.left)?))
            }
            Either::First(Err(error)) | Either::Second(Err(error)) => Err(error.into()),
        }
    }
}

/// Returns whether an error shows that member 0 has dropped the counters.
fn is_dropped(error: &FmplError) -> bool {
    matches!(error, FmplError::Fabric(FabricError::StaleRegion { .. } | FabricError::PeersLeft))
}

/// Returns the result of the one of two waits that has ended.
fn either<T>(ended: Either<T, T>) -> T {
    match ended {
        Either::First(ended) | Either::Second(ended) => ended,
    }
}
