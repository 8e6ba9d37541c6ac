//! Execution of one command: first the data, then the remote notice, the advance and the poster's
//! notice.
//!
//! The last 8 bytes of a put or get are copied last, as the contract guarantees for puts. Up to
//! that point, the command may be started again if the executor dies ([`super::claim`], "Death"),
//! since its effects are not visible to any rank.

mod commands;

use super::{
    claim::Phase,
    config::Stop,
    executor::{Executor, WorkList},
    reporting::CommandNotices,
    tags::resolve,
    view::View,
};
use crate::memory::{
    Mapping, Piece,
    inside::{Inside, RegionId},
};
pub(crate) use commands::Source;
use core::sync::atomic::AtomicU64;
use rdma_fabric::control_queue::{Command, Posting, QueueError, QueueId, Stadd};

/// Bytes of a put or get that are copied last.
const LAST: usize = 8;

/// The outcome of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Performed {
    /// The result at the poster; if it is an error, the command had no effect.
    pub(crate) local: Result<(), QueueError>,
    /// The result at the target. It is already in the poster's MRQ if the poster requested that.
    pub(crate) remote: Result<(), QueueError>,
    /// The command was sent to another node, and completes there or here when its reply arrives:
    /// its number among such commands.
    pub(crate) later: Option<u64>,
}

impl Performed {
    /// Describes a command that completed at its poster.
    #[inline]
    pub(crate) fn here(local: Result<(), QueueError>) -> Self {
        Performed { local, remote: Ok(()), later: None }
    }

    /// Returns the error for which no report was requested.
    #[inline]
    pub(crate) fn unheard(&self, posting: &Posting) -> Option<QueueError> {
        match (self.local, self.remote) {
            (Err(error), _) if !posting.tcq_notice => Some(error),
            (Ok(()), Err(error)) if !posting.local_notice => Some(error),
            _ => None,
        }
    }
}

/// The notices of a command that was executed and its result at the target, or why it was not
/// executed.
pub(crate) type Outcome = Result<(CommandNotices, Result<(), QueueError>), Failure>;

/// Why a command was not done.
pub(crate) enum Failure {
    /// The fault is in the poster's local memory: the target was not reached, or the local memory
    /// was deregistered in the meantime.
    Here(QueueError),
    There(QueueError),
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Failure::There(error)
    }
}

/// The queue to which a command was posted.
pub(crate) struct Origin<'a> {
    pub(crate) id: QueueId,
    /// Whether it is in checking mode.
    pub(crate) checked: bool,
    /// Where the command's phase is recorded, in case another rank takes the command over: its
    /// queue and its position.
    stage: Option<(View<'a>, u64)>,
}

impl<'a> Origin<'a> {
    /// A command of a queue of this node, which is at `position` if it is in the shared ring.
    #[inline]
    fn here(queue: &View<'a>, position: Option<u64>) -> Self {
        let stage = position.map(|position| (*queue, position));
        Origin { id: queue.id, checked: queue.geometry.checked, stage }
    }

    /// A command of a queue of another node.
    pub(crate) fn elsewhere(id: QueueId, checked: bool) -> Self {
        Origin { id, checked, stage: None }
    }

    /// Puts the command into `phase`.
    #[inline]
    fn enter(&self, phase: Phase) {
        if let Some((queue, position)) = &self.stage {
            queue.enter(*position, phase);
        }
    }
}

impl<'a> Executor<'a> {
    /// Executes `posting`, one command of `queue`, which is at `position` if it is in the shared
    /// ring. Its target is on this node, or the queue is this rank's.
    #[inline]
    pub(crate) fn perform(
        &self,
        queue: &View<'_>,
        posting: &Posting,
        position: Option<u64>,
        work: &mut WorkList<'_>,
    ) -> Performed {
        if posting.command.target().is_some_and(|to| self.job.is_remote(to.rank())) {
            return self.send(queue, posting);
        }
        let origin = Origin::here(queue, position);
        work.spend(match posting.command {
            Command::Put { len, .. } | Command::Get { len, .. } => len.into(),
            _ => 0,
        });
        let outcome = match posting.command {
            Command::Put { to, from, at, len, .. } => {
                self.put(&origin, posting, to, Source::Memory(queue, from), at, len.into(), work)
            }
            Command::PutInline { to, bytes, at } => {
                let bytes = bytes.as_bytes();
                self.put(&origin, posting, to, Source::Carried(bytes), at, bytes.len() as u64, work)
            }
            Command::Get { to, from, at, len, .. } => self.get(&origin, queue, posting, to, from, at, len.into()),
            Command::Atomic { to, at, width, amo } => self.atomic(&origin, posting, to, at, width, amo),
            Command::Nop => return Performed::here(Ok(())),
        };
        let (notices, status) = match outcome {
            Ok(done) => done,
            Err(Failure::Here(error)) => return Performed::here(Err(error)),
            Err(Failure::There(error)) => (CommandNotices::of_failed(&posting.command), Err(error)),
        };
        if posting.local_notice {
            origin.enter(Phase::Past);
            self.notify_poster(queue, posting, notices, status);
        }
        Performed { remote: status, ..Performed::here(Ok(())) }
    }
}

// ----- both ends of a copy, resolved and, if the copy is long, announced -----

/// The longest copy, in bytes, that is not announced. Such copies take few instructions.
pub(crate) const SHORT: u64 = 64;

/// One end of a copy, as a queue addresses it.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) at: Stadd,
    pub(crate) len: u64,
    /// Whether the bytes are written.
    pub(crate) writes: bool,
}

/// Both ends of a copy and, if it is long, the announcement that keeps them and the target's queue
/// in place.
pub(crate) struct Ends<'a> {
    pub(crate) own: Piece<&'a Mapping>,
    pub(crate) theirs: Piece<&'a Mapping>,
    pub(crate) target: View<'a>,
    pub(crate) _inside: Option<Inside<'a, AtomicU64, 3>>,
}

impl<'a> Executor<'a> {
    /// Resolves both ends of a copy. A long copy is announced for all regions at once, so that no
    /// thread waits for free words while it holds some.
    #[inline]
    fn ends<'q>(&self, queue: &View<'q>, own: Range, to: QueueId, theirs: Range) -> Result<Ends<'q>, Failure>
    where
        'a: 'q,
    {
        let resolve = |queue: &View<'q>, Range { at, len, writes }| resolve(queue, at, len, 1, writes);
        let (piece, key) = resolve(queue, own).map_err(Failure::Here)?;
        let target: View<'q> = self.target(to)?;
        let (there, its_key) = resolve(&target, theirs)?;
        if own.len <= SHORT {
            return Ok(Ends { own: piece, theirs: there, target, _inside: None });
        }
        let ids = [(queue.owner(), key), (target.owner(), its_key), (target.owner(), target.key)];
        let _inside = Some(self.announce(ids.map(|(rank, key)| RegionId::new(rank, key))));
        // Either a thread that concurrently ends a registration or closes the queue sees the
        // announcement, or this thread sees the end.
        let (piece, now) = resolve(queue, own).map_err(Failure::Here)?;
        if now != key {
            return Err(Failure::Here(QueueError::NoSuchTag { queue: queue.id, stadd: own.at }));
        }
        let (there, now) = resolve(&target, theirs)?;
        if !target.is_open() {
            return Err(QueueError::NotOpen(to).into());
        }
        if now != its_key {
            return Err(QueueError::NoSuchTag { queue: to, stadd: theirs.at }.into());
        }
        Ok(Ends { own: piece, theirs: there, target, _inside })
    }

    /// Resolves the target's end of a copy from another node, and announces it if the copy is long.
    #[inline]
    pub(crate) fn end(
        &self,
        target: &View<'a>,
        Range { at, len, writes }: Range,
    ) -> Result<(Piece<&'a Mapping>, Option<Inside<'a, AtomicU64, 2>>), QueueError> {
        let (piece, key) = resolve(target, at, len, 1, writes)?;
        if len <= SHORT {
            return Ok((piece, None));
        }
        let ids = [RegionId::new(target.owner(), key), RegionId::new(target.owner(), target.key)];
        let inside = self.announce(ids);
        // As in `ends`.
        let (piece, now) = resolve(target, at, len, 1, writes)?;
        if !target.is_open() {
            return Err(QueueError::NotOpen(target.id));
        }
        if now != key {
            return Err(QueueError::NoSuchTag { queue: target.id, stadd: at });
        }
        Ok((piece, Some(inside)))
    }

    /// Returns the target's queue, if it accepts commands.
    #[inline]
    pub(crate) fn target(&self, to: QueueId) -> Result<View<'a>, QueueError> {
        let target = View::find(self.job, to)?;
        match target.stopped() {
            None => Ok(target),
            Some(Stop::Closed) => Err(QueueError::NotOpen(to)),
            Some(_) => Err(QueueError::Stopped(to)),
        }
    }
}

/// Returns why bytes that were resolved can't be accessed.
#[cold]
pub(crate) fn gone(queue: QueueId, stadd: Stadd, piece: &Piece<&Mapping>) -> QueueError {
    if piece.is_lost() { QueueError::PeerLost(queue) } else { QueueError::Stale { queue, stadd } }
}
