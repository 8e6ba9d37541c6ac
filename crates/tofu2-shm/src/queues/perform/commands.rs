//! Put, get and atomic, each with its notice, and the advance of a put.

use super::{Ends, Failure, LAST, Origin, Outcome, Range, gone};
use crate::{
    memory::{Mapping, Piece},
    queues::{
        claim::Phase,
        death::{self, DeathPoint},
        executor::{Executor, WorkList},
        reporting::CommandNotices,
        tags::resolve,
        view::View,
    },
};
use rdma_fabric::{
    Amo,
    control_queue::{Command, Posting, QueueError, QueueId, Stadd, Width},
};

/// The source of a put, as the command specifies it.
pub(crate) enum Source<'s> {
    /// In memory that is registered on the command's own queue.
    Memory(&'s View<'s>, Stadd),
    Carried(&'s [u8]),
}

/// The bytes of a put, resolved.
enum Bytes<'a, 's> {
    Memory(Piece<&'a Mapping>),
    Carried(&'s [u8]),
}

impl<'a> Executor<'a> {
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn put(
        &self,
        origin: &Origin<'_>,
        posting: &Posting,
        to: QueueId,
        source: Source<'_>,
        at: Stadd,
        len: u64,
        work: &mut WorkList<'_>,
    ) -> Outcome {
        let theirs = Range { at, len, writes: true };
        let mut held = None;
        let (from, piece, target, _inside) = match source {
            Source::Memory(queue, from) => {
                let own = Range { at: from, writes: false, ..theirs };
                let Ends { own, theirs, target, _inside } = self.ends(queue, own, to, theirs)?;
                (Bytes::Memory(own), theirs, target, _inside)
            }
            Source::Carried(bytes) => {
                let target = self.target(to)?;
                let (piece, inside) = self.end(&target, theirs)?;
                held = inside;
                (Bytes::Carried(bytes), piece, target, None)
            }
        };
        let claim = self.claim_notice(&target, posting)?;
        let last = (len as usize).min(LAST);
        let rest = len as usize - last;
        let copied = {
            let copy = |start: usize, len: usize| {
                let to = piece.part(start, len)?;
                match &from {
                    Bytes::Memory(from) => to.copy_from(&from.part(start, len)?),
                    Bytes::Carried(bytes) => to.copy_in(bytes.get(start..start + len)?),
                }
            };
            origin.enter(Phase::Data);
            death::reach(DeathPoint::Data);
            let copied = if rest == 0 { Some(()) } else { copy(0, rest) };
            death::reach(DeathPoint::Written);
            origin.enter(Phase::Past);
            copied.and_then(|()| copy(rest, last))
        };
        death::reach(DeathPoint::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            if let Bytes::Memory(from) = from
                && (from.is_lost() || from.is_stale())
            {
                return Err(Failure::Here(gone(origin.id, own_address(&posting.command), &from)));
            }
            return Err(gone(to, at, &piece).into());
        }
        piece.ring();
        drop(held);
        let notices = CommandNotices::of_put(at + len);
        self.notify_target(&target, claim, origin.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        let status = self.credit(&target, origin, posting, work);
        Ok((notices, status))
    }

    /// Executes the advance of a put that has arrived, if it requests one.
    ///
    /// # Errors
    /// [`QueueError::CreditIgnored`].
    #[inline]
    pub(crate) fn credit(
        &self,
        target: &View<'_>,
        origin: &Origin<'_>,
        posting: &Posting,
        work: &mut WorkList<'_>,
    ) -> Result<(), QueueError> {
        let mut status = Ok(());
        if posting.sps != 0 {
            if target.is_session() {
                if self.advance(target, posting.sps.into()) {
                    self.released(target.id, work);
                }
            } else if origin.checked {
                status = Err(QueueError::CreditIgnored { queue: origin.id, sps: posting.sps });
            }
            death::reach(DeathPoint::Advanced);
        }
        status
    }

    /// Advances the session offset of `target`. Returns whether this CPU must execute its commands:
    /// one is due, and no other CPU will look.
    #[inline(always)]
    pub(crate) fn advance(&self, target: &View<'_>, slots: u64) -> bool {
        let turns = target.turns();
        let scheduled = turns.advance(slots);
        !(target.geometry.checked && target.stops_by_overrun(scheduled)) && self.must_turn(target)
    }

    /// Returns whether this CPU, which has advanced `target`, must execute its commands.
    #[inline(always)]
    pub(crate) fn must_turn(&self, target: &View<'_>) -> bool {
        let (turns, owner) = (target.turns(), target.owner().number());
        // If the owner has ended, no command of its queue starts.
        !turns.is_taken(self.me.number(), |rank| rank != owner && self.has_ended(rank)) && turns.is_due()
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn get(
        &self,
        origin: &Origin<'_>,
        queue: &View<'_>,
        posting: &Posting,
        to: QueueId,
        from: Stadd,
        at: Stadd,
        len: u64,
    ) -> Outcome {
        let theirs = Range { at: from, len, writes: false };
        let own = Range { at, ..theirs };
        let Ends { own: sink, theirs: source, target, _inside } = self.ends(queue, own, to, theirs)?;
        let len = len as usize;
        let claim = self.claim_notice(&target, posting)?;
        let last = len.min(LAST);
        let copy = |start: usize, len: usize| sink.part(start, len)?.copy_from(&source.part(start, len)?);
        origin.enter(Phase::Data);
        death::reach(DeathPoint::Data);
        let copied = if len == last { Some(()) } else { copy(0, len - last) };
        death::reach(DeathPoint::Written);
        origin.enter(Phase::Past);
        let copied = copied.and_then(|()| copy(len - last, last));
        death::reach(DeathPoint::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            let own = sink.is_lost() || sink.is_stale();
            return Err(if own { Failure::Here(gone(origin.id, at, &sink)) } else { gone(to, from, &source).into() });
        }
        sink.ring();
        let notices = CommandNotices::of_get(at + len as u64, from + len as u64);
        self.notify_target(&target, claim, origin.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        Ok((notices, Ok(())))
    }

    pub(crate) fn atomic(
        &self,
        origin: &Origin<'_>,
        posting: &Posting,
        to: QueueId,
        at: Stadd,
        width: Width,
        amo: Amo<u64>,
    ) -> Outcome {
        let target = self.target(to)?;
        let (piece, _) = resolve(&target, at, width as u64, width as u8, true)?;
        let claim = self.claim_notice(&target, posting)?;
        origin.enter(Phase::Data);
        death::reach(DeathPoint::Data);
        origin.enter(Phase::Past);
        let old = piece.modify(width as usize, amo);
        if old.is_some() {
            piece.ring();
        }
        death::reach(DeathPoint::Past);
        let Some(value) = old else {
            self.withdraw_notice(&target, claim);
            return Err(gone(to, at, &piece).into());
        };
        let notices = CommandNotices::of_atomic(at, value);
        self.notify_target(&target, claim, origin.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        Ok((notices, Ok(())))
    }
}

/// Returns the local address of a command that has one.
fn own_address(command: &Command) -> Stadd {
    match *command {
        Command::Put { from, .. } => from,
        Command::Get { at, .. } => at,
        _ => Stadd::from_bits(0),
    }
}
