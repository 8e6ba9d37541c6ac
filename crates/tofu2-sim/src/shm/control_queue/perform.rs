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
    Amo, RegionKey,
    control_queue::{Armw, Command, MrqKind, Posting, QueueError, QueueId, Stadd, Width},
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
    /// Own memory went away meanwhile.
    Here(QueueError),
    There(QueueError),
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Failure::There(error)
    }
}

/// Bytes in some rank's memory, and what keeps them there during a long copy.
struct Bytes<'a> {
    piece: Piece<&'a Mapping>,
    _inside: Option<Inside<'a, AtomicU64>>,
}

/// Where the bytes of a put are.
enum Source<'a, 's> {
    Memory(&'s Bytes<'a>),
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
        work: &mut Work,
    ) -> Performed {
        let stage = Stage { queue: *queue, position };
        // What the target's side said, unless it was never asked.
        let said = match posting.command {
            Command::Put { to, from, at, len, .. } => {
                work.spend(len.into());
                self.bytes(queue, from, len.into(), 1, false)
                    .map(|source| self.put(&stage, posting, to, Source::Memory(&source), at, len.into(), work))
            }
            Command::PutInline { to, bytes, at } => {
                work.spend(0);
                let bytes = bytes.as_bytes();
                Ok(self.put(&stage, posting, to, Source::Carried(bytes), at, bytes.len() as u64, work))
            }
            Command::Get { to, from, at, len, .. } => {
                work.spend(len.into());
                self.bytes(queue, at, len.into(), 1, false).map(|sink| self.get(&stage, posting, to, from, at, &sink))
            }
            Command::Armw { to, at, width, op } => {
                work.spend(0);
                Ok(self.atomic(&stage, posting, to, at, width, amo(op)))
            }
            Command::CompareSwap { to, at, width, expected, new } => {
                work.spend(0);
                Ok(self.atomic(&stage, posting, to, at, width, Amo::CompareSwap { expected, new }))
            }
            Command::Nop => {
                work.spend(0);
                return Performed { local: Ok(()), remote: Ok(()) };
            }
        };
        let (told, status) = match said {
            Err(error) => return Performed { local: Err(error), remote: Ok(()) },
            Ok(Ok(told)) => told,
            Ok(Err(Failure::Here(error))) => return Performed { local: Err(error), remote: Ok(()) },
            Ok(Err(Failure::There(error))) => (failed(&posting.command), Err(error)),
        };
        if posting.local_notice {
            stage.enter(Phase::Past);
            self.tell_poster(queue, posting, told, status);
        }
        Performed { local: Ok(()), remote: status }
    }

    /// Resolve bytes; a long copy is announced.
    #[inline]
    fn bytes<'q>(&self, queue: &View<'q>, at: Stadd, len: u64, width: u8, writes: bool) -> Result<Bytes<'q>, QueueError>
    where
        'a: 'q,
    {
        let (piece, key) = resolve(queue, at, len, width, writes)?;
        if len <= SHORT {
            return Ok(Bytes { piece, _inside: None });
        }
        let _inside = Some(self.announce(Id::new(queue.owner(), key)));
        // Whoever ends the registration meanwhile sees the announcement, or this sees the end.
        let (piece, now): (_, RegionKey) = resolve(queue, at, len, width, writes)?;
        if now != key {
            return Err(QueueError::NoSuchTag { queue: queue.id, stadd: at });
        }
        Ok(Bytes { piece, _inside })
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
        source: Source<'_, '_>,
        at: Stadd,
        len: u64,
        work: &mut Work,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let target = self.target(to)?;
        let bytes = self.bytes(&target, at, len, 1, true)?;
        let claim = self.claim_notice(&target, posting)?;
        let last = (len as usize).min(LAST);
        let rest = len as usize - last;
        let copied = {
            let piece = &bytes.piece;
            let copy = |start: usize, len: usize| {
                let to = piece.part(start, len)?;
                match &source {
                    Source::Memory(from) => to.copy_from(&from.piece.part(start, len)?),
                    Source::Carried(bytes) => to.copy_in(bytes.get(start..start + len)?),
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
            if let Source::Memory(from) = source
                && (from.piece.is_lost() || from.piece.is_stale())
            {
                return Err(Failure::Here(gone(stage.queue.id, own_address(&posting.command), &from.piece)));
            }
            return Err(gone(to, at, &bytes.piece).into());
        }
        bytes.piece.ring();
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
        let overrun = target.geometry.checked && ring::is_overrun(turns.read(), scheduled, target.geometry.depth);
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
        sink: &Bytes<'_>,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let target = self.target(to)?;
        let len = sink.piece.len();
        let source = self.bytes(&target, from, len as u64, 1, false)?;
        let claim = self.claim_notice(&target, posting)?;
        let last = len.min(LAST);
        let copy = |start: usize, len: usize| sink.piece.part(start, len)?.copy_from(&source.piece.part(start, len)?);
        stage.enter(Phase::Data);
        death::reach(Label::Data);
        let copied = if len == last { Some(()) } else { copy(0, len - last) };
        death::reach(Label::Written);
        stage.enter(Phase::Past);
        let copied = copied.and_then(|()| copy(len - last, last));
        death::reach(Label::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            let own = sink.piece.is_lost() || sink.piece.is_stale();
            return Err(if own {
                Failure::Here(gone(stage.queue.id, at, &sink.piece))
            } else {
                gone(to, from, &source.piece).into()
            });
        }
        sink.piece.ring();
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

fn amo(op: Armw) -> Amo<u64> {
    match op {
        Armw::Swap(value) => Amo::Swap(value),
        Armw::Add(value) => Amo::Add(value),
        Armw::Xor(value) => Amo::Xor(value),
        Armw::And(value) => Amo::And(value),
        Armw::Or(value) => Amo::Or(value),
    }
}
