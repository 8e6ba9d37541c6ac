//! Both ends of a copy: resolved, and announced while the copy is long.

use super::Failure;
use crate::shm::{
    control_queue::{executor::Executor, geometry::Stop, tags::resolve, words::View},
    inside::{Id, Inside},
    mapping::{Mapping, Piece},
};
use core::sync::atomic::AtomicU64;
use rdma_fabric::control_queue::{QueueError, QueueId, Stadd};

/// The longest copy that is not announced, in bytes: those take few instructions.
const SHORT: u64 = 64;

/// Bytes of a copy that a queue addresses.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) at: Stadd,
    pub(super) len: u64,
    /// Whether they are written.
    pub(super) writes: bool,
}

/// Both ends of a copy, and what keeps them and the target's queue there while it is long.
pub(super) struct Ends<'a> {
    pub(super) own: Piece<&'a Mapping>,
    pub(super) theirs: Piece<&'a Mapping>,
    pub(super) target: View<'a>,
    pub(super) _inside: Option<Inside<'a, AtomicU64, 3>>,
}

impl<'a> Executor<'a> {
    /// Resolve both ends of a copy. A long one is announced, all at once: nobody waits for that who is announced.
    #[inline]
    pub(super) fn ends<'q>(&self, queue: &View<'q>, own: Range, to: QueueId, theirs: Range) -> Result<Ends<'q>, Failure>
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
        let _inside = Some(self.announce(ids.map(|(rank, key)| Id::new(rank, key))));
        // Whoever ends a registration, or closes the queue, meanwhile sees the announcement, or this sees the end.
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

    /// The target's queue, if commands for it are executed.
    #[inline]
    pub(super) fn target(&self, to: QueueId) -> Result<View<'a>, QueueError> {
        let target = View::find(self.job, to)?;
        match target.stopped() {
            None => Ok(target),
            Some(Stop::Closed) => Err(QueueError::NotOpen(to)),
            Some(_) => Err(QueueError::Stopped(to)),
        }
    }
}

/// Why bytes that were resolved can't be accessed.
#[cold]
pub(super) fn gone(queue: QueueId, stadd: Stadd, piece: &Piece<&Mapping>) -> QueueError {
    if piece.is_lost() { QueueError::PeerLost(queue) } else { QueueError::Stale { queue, stadd } }
}
