//! One command: data, then the remote notice, then the advance, then what the poster is told.
//!
//! The last 8 bytes of a put or get are copied last, as the contract promises of puts; up to there it may be begun anew if the
//! executor dies ([`super::claim`], "Death"), since nobody can know of it.

use super::{
    claim::Phase,
    death::{self, Label},
    executor::{Executor, Work},
    geometry::Stop,
    tags::resolve,
    telling::{Told, failed},
    words::View,
};
use crate::control_queue::ring;
use crate::shm::{
    inside::{Id, Inside},
    mapping::{Mapping, Piece},
};
use core::sync::atomic::AtomicU64;
use rdma_fabric::{
    Amo,
    control_queue::{Command, MrqKind, Posting, QueueError, QueueId, Stadd, Width},
};

/// The longest copy that is not announced, in bytes: those take few instructions.
const SHORT: u64 = 64;
/// Bytes of a put or get that are copied last.
const LAST: usize = 8;

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Performed {
    /// What was wrong here: nothing was done then.
    pub(super) local: Result<(), QueueError>,
    /// What was wrong at the target. In the poster's MRQ already, if it asked for it.
    pub(super) remote: Result<(), QueueError>,
}

impl Performed {
    /// The error that nobody asked to hear of.
    #[inline]
    pub(super) fn unheard(&self, posting: &Posting) -> Option<QueueError> {
        match (self.local, self.remote) {
            (Err(error), _) if !posting.tcq_notice => Some(error),
            (Ok(()), Err(error)) if !posting.local_notice => Some(error),
            _ => None,
        }
    }
}

/// Why a command was not done.
enum Failure {
    /// Of own memory; the target was not asked, or own memory went away meanwhile.
    Here(QueueError),
    There(QueueError),
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Failure::There(error)
    }
}

/// Bytes of a copy that a queue addresses.
#[derive(Clone, Copy)]
struct Range {
    at: Stadd,
    len: u64,
    /// Whether they are written.
    writes: bool,
}

/// Both ends of a copy, and what keeps them and the target's queue there while it is long.
struct Ends<'a> {
    own: Piece<&'a Mapping>,
    theirs: Piece<&'a Mapping>,
    target: View<'a>,
    _inside: Option<Inside<'a, AtomicU64, 3>>,
}

/// Where the bytes of a put are.
enum Source<'s> {
    Memory(Stadd),
    Carried(&'s [u8]),
}

/// The same once they are resolved.
enum Bytes<'a, 's> {
    Memory(Piece<&'a Mapping>),
    Carried(&'s [u8]),
}

/// The command's phase, where somebody could take it over.
struct Stage<'a> {
    queue: View<'a>,
    position: Option<u64>,
}

impl Stage<'_> {
    /// From here on the command is in `phase`.
    #[inline]
    fn enter(&self, phase: Phase) {
        if let Some(position) = self.position {
            self.queue.enter(position, phase);
        }
    }
}

impl<'a> Executor<'a> {
    /// Execute `posting`, one command of `queue`, at `position` of its shared ring if it stands there.
    #[inline]
    pub(super) fn perform(
        &self,
        queue: &View<'_>,
        posting: &Posting,
        position: Option<u64>,
        work: &mut Work<'_>,
    ) -> Performed {
        let stage = Stage { queue: *queue, position };
        let said = match posting.command {
            Command::Put { to, from, at, len, .. } => {
                work.spend(len.into());
                self.put(&stage, posting, to, Source::Memory(from), at, len.into(), work)
            }
            Command::PutInline { to, bytes, at } => {
                work.spend(0);
                let bytes = bytes.as_bytes();
                self.put(&stage, posting, to, Source::Carried(bytes), at, bytes.len() as u64, work)
            }
            Command::Get { to, from, at, len, .. } => {
                work.spend(len.into());
                self.get(&stage, posting, to, from, at, len.into())
            }
            Command::Armw { to, at, width, op } => {
                work.spend(0);
                self.atomic(&stage, posting, to, at, width, op.amo())
            }
            Command::CompareSwap { to, at, width, expected, new } => {
                work.spend(0);
                self.atomic(&stage, posting, to, at, width, Amo::CompareSwap { expected, new })
            }
            Command::Nop => {
                work.spend(0);
                return Performed { local: Ok(()), remote: Ok(()) };
            }
        };
        let (told, status) = match said {
            Ok(told) => told,
            Err(Failure::Here(error)) => return Performed { local: Err(error), remote: Ok(()) },
            Err(Failure::There(error)) => (failed(&posting.command), Err(error)),
        };
        if posting.local_notice {
            stage.enter(Phase::Past);
            self.tell_poster(queue, posting, told, status);
        }
        Performed { local: Ok(()), remote: status }
    }

    /// Resolve both ends of a copy. A long one is announced, all at once: nobody waits for that who is announced.
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
        let _inside = Some(self.announce(ids.map(|(rank, key)| Id::new(rank, key))));
        // Whoever ends a registration, or closes the queue, meanwhile sees the announcement, or this sees the end.
        let (piece, now) = resolve(queue, own).map_err(Failure::Here)?;
        if now != key {
            return Err(Failure::Here(QueueError::NoSuchTag { queue: queue.id, stadd: own.at }));
        }
        let (there, now) = resolve(&target, theirs)?;
        if !target.is_open() {
            return Err(QueueError::NotOpen { queue: to }.into());
        }
        if now != its_key {
            return Err(QueueError::NoSuchTag { queue: to, stadd: theirs.at }.into());
        }
        Ok(Ends { own: piece, theirs: there, target, _inside })
    }

    /// The target's queue, if commands for it are executed.
    #[inline]
    fn target(&self, to: QueueId) -> Result<View<'a>, QueueError> {
        let target = View::find(self.job, to)?;
        match target.stopped() {
            None => Ok(target),
            Some(Stop::Closed) => Err(QueueError::NotOpen { queue: to }),
            Some(_) => Err(QueueError::Stopped { queue: to }),
        }
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn put(
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
    pub(super) fn advance(&self, target: &View<'_>, slots: u64) -> bool {
        let turns = target.turns();
        let scheduled = turns.advance(slots);
        // The read pointer is looked at later, so that it is never too far behind.
        let overrun = target.geometry.checked && ring::is_overrun(target.begun(), scheduled, target.geometry.depth);
        if overrun {
            target.stop(Stop::CreditOverrun);
        }
        !overrun
    }

    fn get(
        &self,
        stage: &Stage<'_>,
        posting: &Posting,
        to: QueueId,
        from: Stadd,
        at: Stadd,
        len: u64,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let theirs = Range { at: from, len, writes: false };
        let own = Range { at, ..theirs };
        let Ends { own: sink, theirs: source, target, _inside } = self.ends(&stage.queue, own, to, theirs)?;
        let len = len as usize;
        let claim = self.claim_notice(&target, posting)?;
        let last = len.min(LAST);
        let copy = |start: usize, len: usize| sink.part(start, len)?.copy_from(&source.part(start, len)?);
        stage.enter(Phase::Data);
        death::reach(Label::Data);
        let copied = if len == last { Some(()) } else { copy(0, len - last) };
        death::reach(Label::Written);
        stage.enter(Phase::Past);
        let copied = copied.and_then(|()| copy(len - last, last));
        death::reach(Label::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            let own = sink.is_lost() || sink.is_stale();
            return Err(if own {
                Failure::Here(gone(stage.queue.id, at, &sink))
            } else {
                gone(to, from, &source).into()
            });
        }
        sink.ring();
        let end = from + len as u64;
        let told =
            Told { local: MrqKind::LocalGet, remote: MrqKind::RemoteGet, own: at + len as u64, at: end, value: 0 };
        self.tell_target(&target, claim, stage.queue.id, posting, told);
        death::reach(Label::Noticed);
        Ok((told, Ok(())))
    }

    fn atomic(
        &self,
        stage: &Stage<'_>,
        posting: &Posting,
        to: QueueId,
        at: Stadd,
        width: Width,
        amo: Amo<u64>,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let target = self.target(to)?;
        let (piece, _) = resolve(&target, at, width as u64, width as u8, true)?;
        let claim = self.claim_notice(&target, posting)?;
        stage.enter(Phase::Data);
        death::reach(Label::Data);
        stage.enter(Phase::Past);
        // The piece rings.
        let old = match width {
            Width::Four => piece.rmw4(crate::shm::endpoint::bits(amo, |value| value as u32)).map(u64::from),
            Width::Eight => piece.rmw8(amo),
        };
        death::reach(Label::Past);
        let Some(value) = old else {
            self.withdraw_notice(&target, claim);
            return Err(gone(to, at, &piece).into());
        };
        let told = Told { local: MrqKind::LocalArmw, remote: MrqKind::RemoteArmw, own: Stadd::from_bits(0), at, value };
        self.tell_target(&target, claim, stage.queue.id, posting, told);
        death::reach(Label::Noticed);
        Ok((told, Ok(())))
    }
}

fn own_address(command: &Command) -> Stadd {
    match *command {
        Command::Put { from, .. } => from,
        Command::Get { at, .. } => at,
        _ => Stadd::from_bits(0),
    }
}

/// Why bytes that were resolved can't be accessed.
#[cold]
fn gone(queue: QueueId, stadd: Stadd, piece: &Piece<&Mapping>) -> QueueError {
    if piece.is_lost() { QueueError::PeerLost { queue } } else { QueueError::Stale { queue, stadd } }
}
