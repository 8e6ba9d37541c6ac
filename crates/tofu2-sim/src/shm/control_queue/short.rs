//! Short puts that nothing stands in the way of: what most programs post most of the time.
//!
//! A put of few bytes by a queue that is not in session mode, along a route that is known ([`super::route`]), to a target with
//! room. Everything is looked at before anything is done, so that whatever objects leaves the whole command to
//! [`super::poster`] and [`super::perform`], which tell what was wrong. What happens, and in which order, is the same there.

use super::{
    death::{self, Label},
    executor::Executor,
    poster::Poster,
    tags::find,
    words::View,
};
use crate::shm::mapping::{Mapping, Piece};
use rdma_fabric::control_queue::{Blocks, Command, Completion, Inline, MrqKind, Posting, QueueId, Stadd};

/// The longest put, in bytes.
const SHORT: u32 = 64;
/// Bytes that are written last.
const LAST: usize = 8;

/// Where the bytes are.
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

    /// Copy to `piece`, which is as long.
    #[inline(always)]
    fn copy_to(&self, piece: &Piece<&Mapping>) -> Option<()> {
        death::reach(Label::Data);
        let copied = match self {
            Source::Word(word) => {
                death::reach(Label::Written);
                piece.store_silently(LAST, *word).or_else(|| piece.copy_in(&word.to_ne_bytes()))
            }
            Source::Bytes(bytes) => {
                death::reach(Label::Written);
                piece.copy_in(bytes)
            }
            Source::Memory(from) if from.len() <= LAST => {
                death::reach(Label::Written);
                piece.copy_from(from)
            }
            Source::Memory(from) => copy_in_two(piece, from),
        };
        death::reach(Label::Past);
        copied
    }
}

/// Copy more than [`LAST`] bytes, the last of them last.
#[inline(never)]
fn copy_in_two(to: &Piece<&Mapping>, from: &Piece<&Mapping>) -> Option<()> {
    let rest = from.len().checked_sub(LAST)?;
    to.part(0, rest)?.copy_from(&from.part(0, rest)?)?;
    death::reach(Label::Written);
    to.part(rest, LAST)?.copy_from(&from.part(rest, LAST)?)
}

/// What a short put has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortly {
    /// Nothing: it is none.
    Not,
    Done,
    /// Done, and this queue's commands may be executable.
    Released(QueueId),
}

impl Poster {
    /// Execute `posting` if it is a short put; otherwise nothing has happened.
    #[inline(always)]
    pub(super) fn put_shortly(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting) -> Shortly {
        self.try_shortly(queue, executor, posting).unwrap_or(Shortly::Not)
    }

    #[inline(always)]
    fn try_shortly(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting) -> Option<Shortly> {
        if posting.delay_start || posting.local_notice || posting.sps > 15 || queue.is_session() || !queue.is_going() {
            return None;
        }
        if !self.is_idle() {
            return None;
        }
        let (to, at, source) = match &posting.command {
            Command::PutInline { to, bytes, at } => match bytes.as_bytes().try_into() {
                Ok(word) => (*to, *at, Source::Word(u64::from_ne_bytes(word))),
                Err(_) if bytes.as_bytes().len() <= Inline::ONE_SLOT => (*to, *at, Source::Bytes(bytes.as_bytes())),
                Err(_) => return None,
            },
            &Command::Put { to, from, at, len, blocks: Blocks::ONE }
                if len <= SHORT.min(executor.job.queues.machine.longest) =>
            {
                (to, at, Source::Memory(self.own_bytes(queue, from, len as usize)?))
            }
            _ => return None,
        };
        let len = source.len();
        let (target, piece) = self.routes.follow(executor.job, to, at, len)?;
        if !piece.admits(len) || (posting.sps != 0 && !target.is_session()) {
            return None;
        }
        if posting.remote_notice {
            let claim = match target.mrq().claim_next(executor.me) {
                Some(claim) => claim,
                None => target.mrq().claim(executor.me).ok()??,
            };
            if source.copy_to(&piece).is_none() {
                target.mrq().withdraw(claim);
                // Notices of others may be ready behind it.
                target.segment.ring_for_notice();
                return None;
            }
            let end = at + len as u64;
            target.mrq().publish_good(claim, MrqKind::RemotePut, posting.edata, queue.id, end);
            piece.ring_with_notice();
        } else {
            source.copy_to(&piece)?;
            piece.ring();
        }
        death::reach(Label::Noticed);
        self.took_slot();
        if posting.tcq_notice {
            self.completed(Completion { tag: posting.tag, status: Ok(()) });
        }
        if posting.sps == 0 {
            return Some(Shortly::Done);
        }
        let released = executor.advance(&target, posting.sps.into());
        death::reach(Label::Advanced);
        Some(if released { Shortly::Released(to) } else { Shortly::Done })
    }

    /// Own bytes, as they were found before or are found now.
    #[inline(always)]
    fn own_bytes<'a>(&mut self, queue: &View<'a>, from: Stadd, len: usize) -> Option<Piece<&'a Mapping>> {
        let known = self.routes.own.and_then(|found| found.piece(queue, from, len, false));
        if known.is_none() {
            // Next time.
            self.routes.own = find(queue, from).ok();
        }
        known.filter(|piece| piece.admits(len))
    }
}
