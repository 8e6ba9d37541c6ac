//! Put, get and atomic, each with its notice, and the advance of a put.

use super::{Ends, Failure, LAST, Outcome, PhaseMark, Range, gone};
use crate::{
    control_queue::ring,
    shm::{
        memory::{Mapping, Piece},
        queues::{
            claim::Phase,
            config::Stop,
            death::{self, DeathPoint},
            executor::{Executor, WorkList},
            reporting::CommandNotices,
            tags::resolve,
            view::View,
        },
    },
};
use rdma_fabric::{
    Amo,
    control_queue::{Command, Posting, QueueError, QueueId, Stadd, Width},
};

/// The bytes of a put, as the command gives them.
pub(crate) enum Source<'s> {
    Memory(Stadd),
    Carried(&'s [u8]),
}

/// The bytes of a put, once they are resolved.
enum Bytes<'a, 's> {
    Memory(Piece<&'a Mapping>),
    Carried(&'s [u8]),
}

impl<'a> Executor<'a> {
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn put(
        &self,
        mark: &PhaseMark<'_>,
        posting: &Posting,
        to: QueueId,
        source: Source<'_>,
        at: Stadd,
        len: u64,
        work: &mut WorkList<'_>,
    ) -> Outcome {
        let theirs = Range { at, len, writes: true };
        let (from, piece, target, _inside) = match source {
            Source::Memory(from) => {
                let own = Range { at: from, writes: false, ..theirs };
                let Ends { own, theirs, target, _inside } = self.ends(&mark.queue, own, to, theirs)?;
                (Bytes::Memory(own), theirs, target, _inside)
            }
            Source::Carried(bytes) => {
                let target = self.target(to)?;
                (Bytes::Carried(bytes), resolve(&target, at, len, 1, true)?.0, target, None)
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
            mark.enter(Phase::Data);
            death::reach(DeathPoint::Data);
            let copied = if rest == 0 { Some(()) } else { copy(0, rest) };
            death::reach(DeathPoint::Written);
            mark.enter(Phase::Past);
            copied.and_then(|()| copy(rest, last))
        };
        death::reach(DeathPoint::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            if let Bytes::Memory(from) = from
                && (from.is_lost() || from.is_stale())
            {
                return Err(Failure::Here(gone(mark.queue.id, own_address(&posting.command), &from)));
            }
            return Err(gone(to, at, &piece).into());
        }
        piece.ring();
        let notices = CommandNotices::of_put(at + len);
        self.notify_target(&target, claim, mark.queue.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        let mut status = Ok(());
        if posting.sps != 0 {
            if target.is_session() {
                if self.advance(&target, posting.sps.into()) {
                    self.released(target.id, work);
                }
            } else if mark.queue.geometry.checked {
                status = Err(QueueError::CreditIgnored { queue: mark.queue.id, sps: posting.sps });
            }
            death::reach(DeathPoint::Advanced);
        }
        Ok((notices, status))
    }

    /// Advances the session offset of `target`. Returns whether commands may be executable now.
    pub(crate) fn advance(&self, target: &View<'_>, slots: u64) -> bool {
        let turns = target.turns();
        let scheduled = turns.advance(slots);
        // The read pointer is read after the advance, so that it is never too far behind.
        let overrun = target.geometry.checked && ring::is_overrun(target.begun(), scheduled, target.geometry.depth);
        if overrun {
            target.stop(Stop::CreditOverrun);
        }
        !overrun
    }

    pub(super) fn get(
        &self,
        mark: &PhaseMark<'_>,
        posting: &Posting,
        to: QueueId,
        from: Stadd,
        at: Stadd,
        len: u64,
    ) -> Outcome {
        let theirs = Range { at: from, len, writes: false };
        let own = Range { at, ..theirs };
        let Ends { own: sink, theirs: source, target, _inside } = self.ends(&mark.queue, own, to, theirs)?;
        let len = len as usize;
        let claim = self.claim_notice(&target, posting)?;
        let last = len.min(LAST);
        let copy = |start: usize, len: usize| sink.part(start, len)?.copy_from(&source.part(start, len)?);
        mark.enter(Phase::Data);
        death::reach(DeathPoint::Data);
        let copied = if len == last { Some(()) } else { copy(0, len - last) };
        death::reach(DeathPoint::Written);
        mark.enter(Phase::Past);
        let copied = copied.and_then(|()| copy(len - last, last));
        death::reach(DeathPoint::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            let own = sink.is_lost() || sink.is_stale();
            return Err(if own {
                Failure::Here(gone(mark.queue.id, at, &sink))
            } else {
                gone(to, from, &source).into()
            });
        }
        sink.ring();
        let notices = CommandNotices::of_get(at + len as u64, from + len as u64);
        self.notify_target(&target, claim, mark.queue.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        Ok((notices, Ok(())))
    }

    pub(super) fn atomic(
        &self,
        mark: &PhaseMark<'_>,
        posting: &Posting,
        to: QueueId,
        at: Stadd,
        width: Width,
        amo: Amo<u64>,
    ) -> Outcome {
        let target = self.target(to)?;
        let (piece, _) = resolve(&target, at, width as u64, width as u8, true)?;
        let claim = self.claim_notice(&target, posting)?;
        mark.enter(Phase::Data);
        death::reach(DeathPoint::Data);
        mark.enter(Phase::Past);
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
        self.notify_target(&target, claim, mark.queue.id, posting, notices);
        death::reach(DeathPoint::Noticed);
        Ok((notices, Ok(())))
    }
}

/// Returns the own address of a command that has one.
fn own_address(command: &Command) -> Stadd {
    match *command {
        Command::Put { from, .. } => from,
        Command::Get { at, .. } => at,
        _ => Stadd::from_bits(0),
    }
}
