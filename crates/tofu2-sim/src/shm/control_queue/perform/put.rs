//! A put, with its notice and its advance.

use super::{
    Failure, LAST, Stage,
    ends::{Ends, Range, gone},
};
use crate::control_queue::ring;
use crate::shm::{
    control_queue::{
        claim::Phase,
        death::{self, Label},
        executor::{Executor, Work},
        geometry::Stop,
        tags::resolve,
        telling::Told,
        words::View,
    },
    mapping::{Mapping, Piece},
};
use rdma_fabric::control_queue::{Command, MrqKind, Posting, QueueError, QueueId, Stadd};

/// Where the bytes of a put are.
pub(super) enum Source<'s> {
    Memory(Stadd),
    Carried(&'s [u8]),
}

/// The same once they are resolved.
enum Bytes<'a, 's> {
    Memory(Piece<&'a Mapping>),
    Carried(&'s [u8]),
}

impl<'a> Executor<'a> {
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn put(
        &self,
        stage: &Stage<'_>,
        posting: &Posting,
        to: QueueId,
        source: Source<'_>,
        at: Stadd,
        len: u64,
        work: &mut Work<'_>,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let theirs = Range { at, len, writes: true };
        let (from, piece, target, _inside) = match source {
            Source::Memory(from) => {
                let own = Range { at: from, writes: false, ..theirs };
                let Ends { own, theirs, target, _inside } = self.ends(&stage.queue, own, to, theirs)?;
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
            stage.enter(Phase::Data);
            death::reach(Label::Data);
            let copied = if rest == 0 { Some(()) } else { copy(0, rest) };
            death::reach(Label::Written);
            stage.enter(Phase::Past);
            copied.and_then(|()| copy(rest, last))
        };
        death::reach(Label::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            if let Bytes::Memory(from) = from
                && (from.is_lost() || from.is_stale())
            {
                return Err(Failure::Here(gone(stage.queue.id, own_address(&posting.command), &from)));
            }
            return Err(gone(to, at, &piece).into());
        }
        piece.ring();
        let told = Told {
            local: MrqKind::LocalPut,
            remote: MrqKind::RemotePut,
            own: Stadd::from_bits(0),
            at: at + len,
            value: 0,
        };
        self.tell_target(&target, claim, stage.queue.id, posting, told);
        death::reach(Label::Noticed);
        let mut status = Ok(());
        if posting.sps != 0 {
            if target.is_session() {
                if self.advance(&target, posting.sps.into()) {
                    self.released(target.id, work);
                }
            } else if stage.queue.geometry.checked {
                status = Err(QueueError::CreditIgnored { queue: stage.queue.id, sps: posting.sps });
            }
            death::reach(Label::Advanced);
        }
        Ok((told, status))
    }

    /// Move the session offset of `target` on. Whether commands may be executable then.
    pub(in super::super) fn advance(&self, target: &View<'_>, slots: u64) -> bool {
        let turns = target.turns();
        let scheduled = turns.advance(slots);
        // The read pointer is looked at later, so that it is never too far behind.
        let overrun = target.geometry.checked && ring::is_overrun(target.begun(), scheduled, target.geometry.depth);
        if overrun {
            target.stop(Stop::CreditOverrun);
        }
        !overrun
    }
}

fn own_address(command: &Command) -> Stadd {
    match *command {
        Command::Put { from, .. } => from,
        Command::Get { at, .. } => at,
        _ => Stadd::from_bits(0),
    }
}
