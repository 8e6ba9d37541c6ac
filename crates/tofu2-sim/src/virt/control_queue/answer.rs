//! The way back: results, acknowledgements and errors reach the poster.

use super::{
    super::{
        core::Core,
        event::{Event, Kind},
        op::Verb,
    },
    life::Point,
};
use rdma_fabric::control_queue::{MrqNotice, QueueError, Stadd};

impl Core {
    /// The answer to a command leaves its target `wait` picoseconds from now.
    pub(super) fn answer_later(&mut self, slot: u32, wait: u64) {
        let extra = self.chance.extra();
        let back = self.queues.flights.get(slot).back;
        let leg = self.timing.send + back + self.timing.receive + self.timing.post;
        let at = self.now.saturating_add(wait).saturating_add(leg).saturating_add(extra);
        let at = if self.chance.is_active() { self.queues.answers_in_order(slot, at) } else { at };
        self.queue.push(Event::new(at, Kind::Answer, slot));
    }

    /// An `Answer` event has come.
    pub(in super::super) fn answer(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        let (queue, verb) = (flight.queue, flight.verb);
        if self.queues.get(queue).closed {
            return self.flight_ends(slot);
        }
        if verb == Verb::Get
            && flight.status.is_ok()
            && let Err(error) = self.store(slot)
        {
            self.queues.flights.get_mut(slot).status = Err(error);
        }
        let flight = self.queues.flights.get(slot);
        if verb != Verb::Put && flight.status.is_ok() {
            self.queues.life.pass(Point::Completed, self.now, queue, flight.slot, 1);
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
            // A put that was only not given its advance did everything else.
            let done = matches!(status, Ok(()) | Err(QueueError::CreditIgnored { .. }));
            match verb {
                _ if !done => {}
                Verb::Put => notice.remote = flight.at + u64::from(flight.len),
                Verb::Get => notice.local = flight.own + u64::from(flight.len),
                _ => (notice.value, notice.remote) = (flight.a, flight.at),
            }
            self.notify(queue, notice);
        } else if let Err(error) = status {
            self.unasked(queue, error);
        }
        self.flight_ends(slot);
    }

    /// What was got goes to own memory, if that is still there.
    fn store(&mut self, slot: u32) -> Result<(), QueueError> {
        let flight = self.queues.flights.get(slot);
        let place = self.own_memory(flight.queue, flight.own, flight.len)?;
        if flight.len <= 8 {
            self.memory.copy_in(&place, &flight.a.to_ne_bytes()[..flight.len as usize]);
        } else {
            self.memory.copy_in(&place, &flight.bytes);
        }
        self.touched(&place);
        Ok(())
    }

    /// A command is over in every way.
    pub(super) fn flight_ends(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        let (queue, rank) = (flight.queue, flight.rank);
        self.queues.flights.free(slot);
        self.queues.get_mut(queue).flights -= 1;
        self.queues.retire(queue);
        self.command_ends(rank);
    }
}
