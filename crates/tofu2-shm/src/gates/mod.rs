//! The barrier unit over shared memory: gates are records in their rank's segment.
//!
//! No hardware or dedicated thread executes them: the CPU whose signal completes a gate's inputs
//! executes the gate, and then every gate that this one completes, in any rank's segment
//! ([`fire`]). Records are accessed through the job's mappings and contain only words, each
//! validated when it is read.
//!
//! Gates of ranks of other nodes have mirrors here instead of records: [`remote`].
//!
//! Read [`record`] and [`fire`] first. This file is the provider's side; [`own`] keeps track of the
//! rank's gates and of the rounds it has started.

mod fire;
#[cfg(any(target_os = "linux", test))]
mod mirror;
mod outcome;
pub(crate) mod own;
pub(crate) mod record;
pub(crate) mod remote;

use super::{
    endpoint::Endpoint,
    job::Job,
    memory::{Mapping, layout},
    waiting::{Wait, WaitsFor},
};
use core::{
    sync::atomic::{AtomicU64, Ordering, fence},
    task::{Context, Poll},
};
use own::OwnGates;
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    barrier::{BarrierLimits, GateError, GateId, Progress, Values, Wiring, check_wirings},
    provider::{BarrierUnit, WaitState},
};
use record::{At, Field, Half, Units, records};
use remote::GateUpdate;

/// The job's records.
pub(crate) struct JobUnits<'a>(pub(crate) &'a Job);

impl JobUnits<'_> {
    fn offset(at: At) -> usize {
        layout::GATE_RECORDS + at.node() * layout::GATE_RECORD
    }

    #[inline]
    fn at(&self, at: At, offset: usize) -> &AtomicU64 {
        if at.node() >= records(self) {
            return self.in_mirror(at, offset);
        }
        // Every `At` was created for one of this job's ranks.
        self.0.segment_of(at.rank()).expect("a rank of this job").word(Self::offset(at) + offset)
    }

    #[inline(never)]
    fn in_mirror(&self, at: At, offset: usize) -> &AtomicU64 {
        let number = at.node() - records(self);
        self.mirrors(at.rank()).word(layout::gate_mirror(number) + offset)
    }

    /// Waits until ranks of other nodes have confirmed the updates.
    fn confirm(&self, update: &[GateUpdate]) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let (Some(internode), false) = (self.0.internode(), update.is_empty()) {
            return internode.confirm_gates(update);
        }
        debug_assert!(update.is_empty(), "there are no other nodes");
        Ok(())
    }

    /// Returns the mirrors that a rank of this node keeps.
    #[cfg(target_os = "linux")]
    fn mirrors(&self, rank: Rank) -> &Mapping {
        // A gate can be on another node only if there are other nodes.
        self.0.internode().and_then(|internode| internode.mirrors(rank)).expect("a rank of this node")
    }

    #[cfg(not(target_os = "linux"))]
    fn mirrors(&self, _: Rank) -> &Mapping {
        unreachable!("there are no other nodes")
    }
}

impl Units for JobUnits<'_> {
    type Word = AtomicU64;

    fn ranks(&self) -> usize {
        self.0.plan.ranks
    }

    fn starts(&self) -> usize {
        layout::START_GATES
    }

    fn gates(&self) -> usize {
        layout::GATES
    }

    #[inline]
    fn word(&self, at: At, field: Field) -> &AtomicU64 {
        self.at(at, 8 * field as usize)
    }

    #[inline]
    fn packet(&self, at: At, slot: usize, index: usize) -> &AtomicU64 {
        self.at(at, layout::CACHE_LINE + slot * layout::GATE_PACKET + 8 * index)
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        fence(order);
    }

    fn ended(&self, at: At) {
        let word = Self::offset(at) + 8 * Field::State as usize;
        if let Some(segment) = self.0.segment_of(at.rank()) {
            segment.ring_for_word(word);
        }
    }

    #[inline]
    fn has_remote(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.0.internode().is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    #[inline]
    fn is_remote(&self, rank: Rank) -> bool {
        self.0.is_remote(rank)
    }

    fn send(&self, update: GateUpdate) {
        #[cfg(target_os = "linux")]
        if let Some(internode) = self.0.internode() {
            internode.send_gate_update(&update);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = update;
    }
}

impl Endpoint {
    fn units(&self) -> JobUnits<'_> {
        JobUnits(self.job())
    }

    /// Returns the end half of `gate` and its round in progress.
    fn in_flight(&self, own: &OwnGates, gate: GateId) -> Result<(At, u64)> {
        let units = self.units();
        let at = own.start_gate(&units, self.me(), gate)?;
        let end = At::end_of(&units, at);
        own.outstanding(at).map(|round| (end, round)).ok_or_else(|| GateError::Idle(gate).into())
    }

    /// Returns the outcome of the operation of `gate`, if it has completed.
    fn outcome(&self, gate: GateId, deps: &Deps<'_>) -> Result<Option<Progress>> {
        let mut own = self.own_gates();
        let (end, round) = self.in_flight(&own, gate)?;
        let Some(outcome) = outcome::outcome(&self.units(), end, round) else { return Ok(None) };
        own.completed(gate);
        match outcome {
            Ok(values) => Ok(Some(Progress::Completed(values))),
            Err(fault) => {
                let error = FabricError::from(fault);
                // A lost rank has freed its gates, or causes others to free theirs.
                let freed = matches!(&error, FabricError::Gate(error) if matches!(**error, GateError::Freed(_)));
                match self.outlook(deps) {
                    Err(lost @ FabricError::PeerLost { .. }) if freed => Err(lost),
                    _ => Err(error),
                }
            }
        }
    }
}

impl BarrierUnit for Endpoint {
    fn limits(&self) -> BarrierLimits {
        BarrierLimits::own(layout::START_GATES, layout::GATES - layout::START_GATES)
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        let gone = |rank: Rank| self.job().control.state(rank.index()) > super::job::control::State::Running;
        let units = self.units();
        let taken = self.own_gates().take(&units, self.me(), relays, gone);
        let waits = match &taken {
            Ok(_) => Vec::new(),
            Err(_) => self.own_gates().undrained(&units, self.me(), gone),
        };
        if waits.is_empty() {
            return Ok(taken?);
        }
        // Destinations on other nodes may have read packets without having reported it yet.
        units.confirm(&waits)?;
        Ok(self.own_gates().take(&units, self.me(), relays, gone)?)
    }

    fn free(&self, gates: &[GateId]) {
        let units = self.units();
        let freed = self.own_gates().free(&units, self.me(), gates);
        // Gates that wait for the freed ones, or will signal them, must be notified.
        freed.iter().for_each(|&at| remote::send(&units, at));
        let concerned = freed.iter().flat_map(|&at| fire::neighbours(&units, at));
        fire::run(&units, self.me(), concerned.collect());
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        let units = self.units();
        let mut own = self.own_gates();
        let alive = |gate: GateId| {
            let at = own.gate(&units, self.me(), gate)?;
            Ok((record::wiring(&units, at, gate), at.half(&units) == Half::Start))
        };
        check_wirings(self.me(), self.job().plan.ranks, wirings, alive)?;
        let concerned = own.set(&units, self.me(), wirings)?;
        drop(own);
        units.confirm(&concerned)
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        let units = self.units();
        let at = self.own_gates().start(&units, self.me(), gate, &values)?;
        fire::run(&units, self.me(), vec![at]);
        Ok(())
    }

    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        if let Some(progress) = self.outcome(gate, &deps)? {
            return Ok(progress);
        }
        let changes = self.job().control.changes();
        if !self.own_gates().has_changed(gate, changes) {
            return Ok(Progress::NotCompleted);
        }
        match self.outlook(&deps) {
            Ok(()) => {
                self.own_gates().seen(gate, changes);
                Ok(Progress::NotCompleted)
            }
            // A result that is complete takes precedence over the error.
            Err(error) => self.outcome(gate, &deps)?.ok_or(error),
        }
    }

    fn poll(
        &self,
        wait_state: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        let idle = || FabricError::from(GateError::Idle(gate));
        // The wait state holds 1 + the round that was in progress at the first poll.
        let round = match wait_state.0[ROUND].checked_sub(1) {
            Some(round) => round,
            None => self.in_flight(&self.own_gates(), gate)?.1,
        };
        let units = self.units();
        let at = self.own_gates().start_gate(&units, self.me(), gate)?;
        let end = At::end_of(&units, at);
        let word = WaitsFor::Gate(JobUnits::offset(end) + 8 * Field::State as usize);
        while !outcome::is_complete(&units, end, round) {
            match Wait::resume(self, wait_state, |wait| wait.until_polled(cx, word, &deps)) {
                Poll::Pending => {
                    wait_state.0[ROUND] = round + 1;
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) => {}
                // A result that is complete takes precedence over the error.
                Poll::Ready(Err(_)) if outcome::is_complete(&units, end, round) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(match self.outcome(gate, &deps)? {
            Some(Progress::Completed(values)) => Ok(values),
            // Another task of this rank took it.
            _ => Err(idle()),
        })
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        Wait::end(self, wait_state);
    }
}

/// The index of the round in a wait state.
const ROUND: usize = 3;

#[cfg(all(test, not(miri)))]
mod model;
#[cfg(all(test, not(miri)))]
mod model_nodes;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod wirings;
