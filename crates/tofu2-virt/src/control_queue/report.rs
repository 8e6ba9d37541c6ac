//! The reports of a queue: completions, notices, the answers that return to the poster, and the
//! lanes that they wake.

use super::{
    super::{clock::EventKind, core::Core, operation::Opcode, ranks::QueueReport},
    state::Health,
};
use rdma_fabric::control_queue::{Completion, MrqNotice, QueueError, Stadd};

impl Core {
    /// Adds a completion to the TCQ, where it becomes visible at `at`.
    pub(super) fn completed(&mut self, queue: u32, at: u64, completion: Completion) {
        let at = at.saturating_add(self.injector.completion_late(self.queues.rank_of(queue)));
        let state = self.queues.get_mut(queue);
        // Never before the previous one.
        let at = state.tcq.back().map_or(at, |(last, _)| at.max(*last));
        state.tcq.push_back((at, completion));
        let rank = state.rank;
        for lane in self.ranks.awaiting(rank, queue, Some(QueueReport::Completion)) {
            self.clock.wake_at(lane, at);
        }
    }

    /// Wakes the lanes of a rank that wait for this report, or for any report, of a queue.
    pub(super) fn wake_awaiting(&mut self, rank: u32, queue: u32, report: Option<QueueReport>) {
        for lane in self.ranks.awaiting(rank, queue, report) {
            self.ranks.wake(lane);
        }
    }

    /// Adds a notice to the MRQ. If there is no room for it, the queue stops.
    pub(super) fn notify(&mut self, queue: u32, notice: MrqNotice) {
        let overflows = self.injector.overflows(self.queues.rank_of(queue));
        let state = self.queues.get_mut(queue);
        if overflows || state.mrq.len() >= state.mrq_depth as usize {
            let error = QueueError::MrqOverflow { queue: state.id, depth: state.mrq_depth };
            return self.stop(queue, error);
        }
        state.mrq.push_back(notice);
        let rank = state.rank;
        self.wake_awaiting(rank, queue, Some(QueueReport::Notice));
    }

    /// Records that a command for which no report was requested has failed. The first such error is
    /// kept for the next call.
    pub(super) fn unasked(&mut self, queue: u32, error: QueueError) {
        let state = self.queues.get_mut(queue);
        if state.health == Health::Well {
            state.health = Health::CommandFailed(error);
            let rank = state.rank;
            self.wake_awaiting(rank, queue, None);
        }
    }

    /// Stops the queue: none of its commands is executed from now on.
    pub(super) fn stop(&mut self, queue: u32, error: QueueError) {
        let state = self.queues.get_mut(queue);
        if !state.has_stopped() {
            state.health = Health::Stopping(error);
            let rank = state.rank;
            self.wake_awaiting(rank, queue, None);
        }
    }

    /// Sends the answer to a command from its target `wait` picoseconds from now.
    pub(super) fn answer_later(&mut self, slot: u32, wait: u64) {
        let extra = self.clock.extra();
        let leg = self.machine.timing.leg_back(self.queues.flights.get(slot).back);
        let at = self.clock.now().saturating_add(wait).saturating_add(leg).saturating_add(extra);
        let at = if self.clock.is_random() { self.queues.answers_in_order(slot, at) } else { at };
        self.clock.push(at, EventKind::Answer, slot);
    }

    /// Handles an `Answer` event.
    pub(crate) fn answer(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        let (queue, opcode) = (flight.queue, flight.opcode);
        if self.queues.get(queue).closed {
            return self.flight_ends(slot);
        }
        if opcode == Opcode::Get
            && flight.status.is_ok()
            && let Err(error) = self.store(slot)
        {
            self.queues.flights.get_mut(slot).status = Err(error);
        }
        let flight = self.queues.flights.get(slot);
        if opcode != Opcode::Put && flight.status.is_ok() {
            self.queues.counts.completed += 1;
        }
        let zero = Stadd::from_bits(0);
        let status = flight.status;
        if flight.wants.local_notice {
            let mut notice = MrqNotice {
                kind: flight.local_kind(),
                peer: flight.to,
                edata: flight.edata,
                value: 0,
                local: zero,
                remote: zero,
                status,
            };
            // A put whose advance was ignored has had all its other effects.
            let done = matches!(status, Ok(()) | Err(QueueError::CreditIgnored { .. }));
            match opcode {
                _ if !done => {}
                Opcode::Put => notice.remote = flight.at + u64::from(flight.len),
                Opcode::Get => notice.local = flight.own + u64::from(flight.len),
                _ => (notice.value, notice.remote) = (flight.a, flight.at),
            }
            self.notify(queue, notice);
        } else if let Err(error) = status {
            self.unasked(queue, error);
        }
        self.flight_ends(slot);
    }

    /// Stores the bytes that a get has read in the poster's memory, if that is still registered.
    fn store(&mut self, slot: u32) -> Result<(), QueueError> {
        let flight = self.queues.flights.get(slot);
        let place = self.queues.own_memory(&self.memory, flight.queue, flight.own, flight.len)?;
        self.memory.copy_in(&place, flight.payload());
        self.ranks.touched(&place);
        Ok(())
    }

    /// Ends a flight, with nothing left to do for it.
    pub(super) fn flight_ends(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        let (queue, rank) = (flight.queue, flight.rank);
        self.queues.flights.free(slot);
        self.queues.get_mut(queue).flights -= 1;
        self.queues.retire(queue);
        self.ranks.release_command(rank);
    }
}
