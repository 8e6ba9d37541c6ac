//! The fast path for short puts, the most common commands of most programs.
//!
//! It handles a put of few bytes along a known route ([`super::route`]) to a target with room. All
//! checks precede all effects, so that a failed check leaves the whole command to [`super::poster`]
//! or [`super::executor`] and [`super::perform`], which report the error. They take the same steps
//! in the same order.

use super::{
    claim::Phase,
    death::{self, DeathPoint},
    executor::{Executor, WorkList},
    poster::Poster,
    route::Routes,
    view::{TcqEntry, View},
};
use crate::{
    memory::{Mapping, Piece},
    notices::ring,
    queues::format::{
        descriptor::{Brief, Payload},
        status::Status,
    },
};
use rdma_fabric::control_queue::{Blocks, Command, Completion, Inline, MrqKind, Posting, QueueId, Stadd};

/// The longest put, in bytes.
const SHORT: u32 = 64;
/// Bytes that are written last.
const LAST: usize = 8;

/// A short put.
struct Put<'p> {
    to: QueueId,
    at: Stadd,
    given: Given<'p>,
    edata: u8,
    sps: u8,
    remote_notice: bool,
}

/// The source of the put, as the command specifies it.
enum Given<'p> {
    Word(u64),
    Bytes(&'p [u8]),
    /// At most [`SHORT`] bytes of local memory.
    Memory(Stadd, u32),
}

/// The bytes to be put, resolved.
enum Source<'a, 'p> {
    Word(u64),
    Bytes(&'p [u8]),
    Memory(Piece<&'a Mapping>),
}

impl Source<'_, '_> {
    #[inline(always)]
    fn len(&self) -> usize {
        match self {
            Source::Word(_) => LAST,
            Source::Bytes(bytes) => bytes.len(),
            Source::Memory(piece) => piece.len(),
        }
    }

    /// Copies to `piece`, which has the same length, and reports each phase to `enter`.
    #[inline(always)]
    fn copy_to(&self, piece: &Piece<&Mapping>, enter: impl Fn(Phase)) -> Option<()> {
        death::reach(DeathPoint::Data);
        if let Source::Memory(from) = self
            && from.len() > LAST
        {
            return copy_in_two(piece, from, enter);
        }
        death::reach(DeathPoint::Written);
        enter(Phase::Past);
        match self {
            Source::Word(word) => {
                piece.store_silently(LAST, *word).or_else(|| piece.copy_in(&word.to_ne_bytes()))?;
            }
            Source::Bytes(bytes) => piece.copy_in(bytes)?,
            Source::Memory(from) => piece.copy_from(from)?,
        }
        death::reach(DeathPoint::Past);
        Some(())
    }
}

/// Copies more than [`LAST`] bytes, the last [`LAST`] of them in a second step.
#[inline(never)]
pub(crate) fn copy_in_two(to: &Piece<&Mapping>, from: &Piece<&Mapping>, enter: impl Fn(Phase)) -> Option<()> {
    let rest = from.len().checked_sub(LAST)?;
    enter(Phase::Data);
    to.part(0, rest)?.copy_from(&from.part(0, rest)?)?;
    death::reach(DeathPoint::Written);
    enter(Phase::Past);
    to.part(rest, LAST)?.copy_from(&from.part(rest, LAST)?)?;
    death::reach(DeathPoint::Past);
    Some(())
}

/// Outcome of a short put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastPut {
    /// Not executed: it is not a short put, or the fast path does not apply.
    Not,
    Done,
    /// Done, and this queue's commands may be executable.
    Released(QueueId),
}

impl Executor<'_> {
    /// Executes `put`, a command of `queue`. Returns `None` if the fast path does not apply; then
    /// another attempt repeats all effects so far.
    #[inline(always)]
    fn put_along<const N: usize>(
        &self,
        queue: &View<'_>,
        put: &Put<'_>,
        routes: &mut Routes<N>,
        enter: impl Fn(Phase),
    ) -> Option<FastPut> {
        let source = match put.given {
            Given::Word(word) => Source::Word(word),
            Given::Bytes(bytes) => Source::Bytes(bytes),
            Given::Memory(from, len) => Source::Memory(routes.own_bytes(queue, from, len as usize)?),
        };
        let len = source.len();
        let (target, piece) = routes.follow(self.job, put.to, put.at, len)?;
        if !piece.admits(len) || (put.sps != 0 && !target.is_session()) {
            return None;
        }
        if put.remote_notice {
            let claim = match ring::claim_next(&target.mrq(), self.me) {
                Some(claim) => claim,
                None => ring::claim(&target.mrq(), self.me).ok()??,
            };
            if source.copy_to(&piece, enter).is_none() {
                ring::withdraw(&target.mrq(), claim);
                // Other ranks' notices may be ready behind it.
                target.segment.ring_for_notice();
                return None;
            }
            target.mrq().publish_good(claim, MrqKind::RemotePut, put.edata, queue.id, put.at + len as u64);
            piece.ring_with_notice();
        } else {
            source.copy_to(&piece, enter)?;
            piece.ring();
        }
        death::reach(DeathPoint::Noticed);
        if put.sps == 0 {
            return Some(FastPut::Done);
        }
        let released = self.advance(&target, put.sps.into());
        death::reach(DeathPoint::Advanced);
        Some(if released { FastPut::Released(put.to) } else { FastPut::Done })
    }

    /// Executes the command of one slot at `position` of a session queue, with its claim held, if
    /// it is a nop or a short put and the fast path applies. Returns whether it was executed;
    /// otherwise it has not started.
    #[inline(always)]
    pub(crate) fn step_fast(&self, queue: &View<'_>, position: u64, brief: &Brief, work: &mut WorkList<'_>) -> bool {
        let given = match brief.payload {
            Payload::Nothing => None,
            Payload::Word(word) => Some(Given::Word(word)),
            Payload::Memory(from, len) if len <= SHORT.min(self.job.queues.machine.longest) => {
                Some(Given::Memory(from, len))
            }
            Payload::Memory(..) => return false,
        };
        if let Some(given) = given {
            let Some(cached) = work.cached.as_deref_mut() else { return false };
            let Brief { to, at, edata, sps, remote_notice, .. } = *brief;
            let put = Put { to, at, given, edata, sps, remote_notice };
            let enter = |phase| queue.enter(position, phase);
            match self.put_along(queue, &put, &mut cached.routes, enter) {
                Some(FastPut::Released(id)) if id != queue.id => self.released(id, work),
                // The executor of this queue will see the advance that it made itself.
                Some(_) => {}
                None => {
                    // The failed put is not visible to any other rank, so the phase can go back.
                    queue.enter(position, Phase::Idle);
                    return false;
                }
            }
        }
        work.spend(0);
        // So that nothing is reported twice.
        queue.enter(position, Phase::Past);
        if brief.tcq_notice {
            queue.complete(TcqEntry { position, kept: false, status: Status::encode(Ok(())) });
        }
        true
    }
}

impl Poster {
    /// Executes `posting` of a queue that is not in session mode if it is a short put; otherwise
    /// has no effect.
    #[inline(always)]
    pub(crate) fn put_fast(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting) -> FastPut {
        self.try_put_fast(queue, executor, posting).unwrap_or(FastPut::Not)
    }

    #[inline(always)]
    fn try_put_fast(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting) -> Option<FastPut> {
        if posting.delay_start || posting.local_notice || posting.sps > 15 || !queue.is_going() {
            return None;
        }
        if !self.is_idle() {
            return None;
        }
        let (to, at, given) = match &posting.command {
            Command::PutInline { to, bytes, at } => match bytes.as_bytes().try_into() {
                Ok(word) => (*to, *at, Given::Word(u64::from_ne_bytes(word))),
                Err(_) if bytes.as_bytes().len() <= Inline::ONE_SLOT => (*to, *at, Given::Bytes(bytes.as_bytes())),
                Err(_) => return None,
            },
            &Command::Put { to, from, at, len, blocks: Blocks::ONE }
                if len <= SHORT.min(executor.job.queues.machine.longest) =>
            {
                (to, at, Given::Memory(from, len))
            }
            _ => return None,
        };
        let Posting { edata, sps, remote_notice, .. } = *posting;
        let put = Put { to, at, given, edata, sps, remote_notice };
        let done = executor.put_along(queue, &put, &mut self.routes, |_| ())?;
        self.took_slot();
        if posting.tcq_notice {
            self.completed(Completion { tag: posting.tag, status: Ok(()) });
        }
        Some(done)
    }
}
