//! Execution of known commands.

use super::{KnownPut, KnownSource, WORD, is_same};
use crate::{
    memory::{Piece, inside::RegionId, word::Word},
    notices::ring,
    queues::{
        claim::Phase,
        death::{self, DeathPoint},
        executor::{Executor, WorkList},
        fast_put::copy_in_two,
        format::descriptor::{self, SLOT},
        perform::SHORT,
        view::View,
    },
};
use rdma_fabric::control_queue::{MrqKind, QueueId};

/// A known command that was executed.
#[derive(Clone, Copy, Debug)]
struct Executed {
    /// The queue whose commands may be executable now.
    released: Option<QueueId>,
    tcq_notice: bool,
    /// The number of bytes.
    len: u64,
}

impl Executor<'_> {
    /// Executes the command of one slot at `position` of a session queue, with its claim held, if the
    /// executor knows it. Returns whether it was executed; otherwise it has not started.
    #[inline(never)]
    pub(crate) fn step_known(
        &self,
        queue: &View<'_>,
        position: u64,
        first: [u64; SLOT],
        work: &mut WorkList<'_>,
    ) -> bool {
        let fixed = descriptor::fixed_part(first);
        if is_same(&fixed, &descriptor::NOP) {
            work.spend(0);
            return true;
        }
        let Some(cached) = work.cached.as_deref() else { return false };
        let Some(known) = cached.known.get(queue, &fixed) else { return false };
        let executed = match known.to.len() as u64 <= SHORT {
            true => self.put_known(queue, known, position, first),
            false => self.put_known_announced(queue, known, position, first),
        };
        let Some(Executed { released, tcq_notice, len }) = executed else {
            // The failed put is not visible to any other rank, so the phase can go back.
            queue.enter(position, Phase::Idle);
            return false;
        };
        // The executor of this queue will see the advance that it made itself.
        if let Some(id) = released.filter(|id| *id != queue.id) {
            self.released(id, work);
        }
        work.spend(len);
        if tcq_notice {
            queue.complete_well(position);
        }
        true
    }

    /// Executes a long put, while both regions and the target's queue stay in place.
    #[inline(never)]
    fn put_known_announced(
        &self,
        queue: &View<'_>,
        known: &KnownPut,
        position: u64,
        first: [u64; SLOT],
    ) -> Option<Executed> {
        let to = known.route.found().key();
        let from = known.from.as_ref().map_or(to, |from| from.found.key());
        let target = known.route.target();
        let ids = [(queue.owner(), from), (target.rank(), to), (target.rank(), known.route.words_key())];
        let _inside = self.announce(ids.map(|(rank, key)| RegionId::new(rank, key)));
        self.put_known(queue, known, position, first)
    }

    #[inline(always)]
    fn put_known(&self, queue: &View<'_>, known: &KnownPut, position: u64, first: [u64; SLOT]) -> Option<Executed> {
        let (to, len) = (&known.to, known.to.len());
        let target = known.kept.current(&known.route)?;
        // The line of the next store that has to be ordered after others: fetched while these are made.
        match known.remote_notice {
            true => target.mrq().tail.expect_store(),
            false => target.expect_turn(),
        }
        if !to.admits(len) {
            return None;
        }
        if let Some(KnownSource { found, tag, piece }) = &known.from {
            let [word, key] = &**tag;
            if !found.is_in((word, key)) || !piece.admits(len) {
                return None;
            }
        }
        let claim = match known.remote_notice {
            false => None,
            true => match ring::claim_next(&target.mrq(), self.me) {
                Some(claim) => Some(claim),
                None => Some(ring::claim(&target.mrq(), self.me).ok()??),
            },
        };
        let enter = |phase| queue.enter(position, phase);
        if copy(to, known.from.as_ref().map(|from| &from.piece), first[1], enter).is_none() {
            self.withdraw_known(known, claim);
            return None;
        }
        if let Some(claim) = claim {
            let edata = descriptor::edata(first);
            target.mrq().publish_good(claim, MrqKind::RemotePut, edata, queue.id, known.end);
            to.ring_with_notice();
        } else {
            to.ring();
        }
        death::reach(DeathPoint::Noticed);
        let is_released = known.sps != 0 && {
            let turns = target.turns();
            let scheduled = turns.advance(known.sps.into());
            let is_stopped = known.route.is_checked() && Self::known_is_overrun(known, scheduled);
            death::reach(DeathPoint::Advanced);
            !is_stopped && self.must_turn(&target)
        };
        let released = is_released.then_some(known.route.target());
        Some(Executed { released, tcq_notice: known.tcq_notice, len: len as u64 })
    }
}

// The rare cases make the target's queue again, so that the others keep only what they need of it in
// registers.
impl Executor<'_> {
    /// Withdraws a notice for the target of `known`.
    #[cold]
    #[inline(never)]
    fn withdraw_known(&self, known: &KnownPut, claim: Option<ring::Claim>) {
        self.withdraw_notice(&known.kept.queue(&known.route), claim);
    }

    /// Stops the target of `known` if its credit has passed its ring. Returns whether it did.
    #[cold]
    #[inline(never)]
    fn known_is_overrun(known: &KnownPut, scheduled: u64) -> bool {
        known.kept.queue(&known.route).stops_by_overrun(scheduled)
    }
}

/// Copies to `to` from memory or, if there is none, from `word`, and reports each phase to `enter`.
#[inline(always)]
fn copy(to: &Piece, from: Option<&Piece>, word: u64, enter: impl Fn(Phase)) -> Option<()> {
    death::reach(DeathPoint::Data);
    if let Some(from) = from
        && from.len() > WORD
    {
        return copy_in_two(&to.borrowed(), &from.borrowed(), enter);
    }
    death::reach(DeathPoint::Written);
    enter(Phase::Past);
    match from {
        Some(from) => to.copy_from(from)?,
        None => to.store_silently(WORD, word).or_else(|| to.copy_in(&word.to_ne_bytes()))?,
    }
    death::reach(DeathPoint::Past);
    Some(())
}
