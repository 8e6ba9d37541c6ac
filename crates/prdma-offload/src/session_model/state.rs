//! The state of a model, its possible events, and their effects.

use super::{Arrival, Model, Queue, Rounds, Violation};
use core::ops::Range;

/// The pointers of a queue, in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Pointers {
    read: u32,
    write: u32,
    scheduled: u32,
}

/// A put in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight<D> {
    /// From one queue to another.
    pub(super) wire: (u16, u16),
    slot: u16,
    k: u8,
    data: D,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct State<M, D> {
    queues: Vec<Pointers>,
    rounds: Vec<Rounds>,
    /// The puts in flight, by wire; those of one wire in order.
    pub(super) flying: Vec<Flight<D>>,
    /// The iterations of the notices that have arrived, by queue; those of one queue in order.
    notices: Vec<(u16, u8)>,
    memory: M,
}

impl<M: Clone, D: Clone> Clone for State<M, D> {
    fn clone(&self) -> Self {
        State {
            queues: self.queues.clone(),
            rounds: self.rounds.clone(),
            flying: self.flying.clone(),
            notices: self.notices.clone(),
            memory: self.memory.clone(),
        }
    }
    /// Clones from another state, keeping the allocations.
    fn clone_from(&mut self, from: &Self) {
        self.queues.clone_from(&from.queues);
        self.rounds.clone_from(&from.rounds);
        self.flying.clone_from(&from.flying);
        self.notices.clone_from(&from.notices);
        self.memory.clone_from(&from.memory);
    }
}

/// A possible next event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A member starts an iteration.
    Start(usize),
    /// A member ends an iteration.
    End(usize),
    /// A queue starts its next slot.
    Leave(usize),
    /// A put arrives, the first of its wire.
    Arrive(usize),
}

pub(super) type StateOf<T> = State<<T as Model>::Memory, <T as Model>::Data>;

/// Returns the state before all events.
pub(super) fn start<T: Model>(model: &T) -> StateOf<T> {
    let pointers = |queue: &Queue| Pointers { scheduled: queue.ahead.unwrap_or(0), ..Pointers::default() };
    State {
        queues: model.queues().iter().map(pointers).collect(),
        rounds: vec![Rounds::default(); model.members()],
        flying: Vec::new(),
        notices: Vec::new(),
        memory: model.memory(),
    }
}

impl<M, D> State<M, D> {
    /// Returns the positions of a queue's notices.
    fn notices_of(&self, queue: usize) -> Range<usize> {
        let before = |bound: usize| self.notices.partition_point(|(at, _)| usize::from(*at) < bound);
        before(queue)..before(queue + 1)
    }

    /// Returns the possible events.
    pub(super) fn events<T: Model<Memory = M, Data = D>>(&self, model: &T) -> Vec<Event> {
        let queues = || self.queues.iter().zip(model.queues());
        let may = |(pointers, queue): (&Pointers, &Queue)| {
            pointers.read < pointers.write && (queue.ahead.is_none() || pointers.read < pointers.scheduled)
        };
        let mut leaving: Vec<Event> =
            queues().enumerate().filter(|(_, queue)| may(*queue)).map(|(at, _)| Event::Leave(at)).collect();
        if model.prompt() && !leaving.is_empty() {
            leaving.truncate(1);
            return leaving;
        }
        let mut events = Vec::new();
        for (member, rounds) in self.rounds.iter().enumerate() {
            if rounds.started == rounds.ended && rounds.started < model.iterations() {
                events.push(Event::Start(member));
            }
            let over = |(at, (pointers, queue)): (usize, (&Pointers, &Queue))| {
                queue.member != member || pointers.read == pointers.write && self.notices_of(at).len() >= queue.notices
            };
            let may_end = || model.may_end(&self.memory, member, rounds.started);
            if rounds.started > rounds.ended && queues().enumerate().all(over) && may_end() {
                events.push(Event::End(member));
            }
        }
        events.append(&mut leaving);
        let first = |at: &usize| *at == 0 || self.flying[at - 1].wire != self.flying[*at].wire;
        events.extend((0..self.flying.len()).filter(first).map(Event::Arrive));
        let at = |event: &Event| match event {
            Event::Start(member) | Event::End(member) => *member,
            Event::Leave(queue) => model.queues()[*queue].member,
            Event::Arrive(at) => model.queues()[usize::from(self.flying[*at].wire.1)].member,
        };
        match events.iter().find(|event| !model.slow(at(event))) {
            Some(event) => vec![*event],
            None => events,
        }
    }

    /// Executes `event`.
    pub(super) fn happen<T: Model<Memory = M, Data = D>>(&mut self, model: &T, event: Event) -> Result<(), Violation> {
        match event {
            Event::Start(member) => {
                self.rounds[member].started += 1;
                for (pointers, queue) in self.queues.iter_mut().zip(model.queues()) {
                    if queue.member == member {
                        pointers.write += queue.slots.len() as u32;
                    }
                }
                model.start(&mut self.memory, member, self.rounds[member].started)
            }
            Event::End(member) => {
                let k = self.rounds[member].started;
                self.rounds[member].ended = k;
                for (at, queue) in model.queues().iter().enumerate().filter(|(_, queue)| queue.member == member) {
                    let first = self.notices_of(at).start;
                    if self.notices.drain(first..first + queue.notices).any(|(_, notice)| notice != k) {
                        return Err(Violation::Notices { queue: at });
                    }
                }
                model.end(&mut self.memory, &self.rounds, member, k)
            }
            Event::Leave(at) => {
                let (pointers, queue) = (&mut self.queues[at], &model.queues()[at]);
                let many = queue.slots.len() as u32;
                let (k, slot) = ((pointers.read / many + 1) as u8, (pointers.read % many) as usize);
                pointers.read += 1;
                let Some(to) = queue.slots[slot].to else { return Ok(()) };
                let (wire, data) = ((at as u16, to as u16), model.leave(&mut self.memory, (at, slot), k)?);
                let place = self.flying.partition_point(|flight| flight.wire <= wire);
                self.flying.insert(place, Flight { wire, slot: slot as u16, k, data });
                Ok(())
            }
            Event::Arrive(at) => {
                let Flight { wire: (from, to), slot, k, data } = self.flying.remove(at);
                let (of, to) = ((usize::from(from), usize::from(slot)), usize::from(to));
                model.arrive(&mut self.memory, &self.rounds, Arrival { of, k, data: &data })?;
                let (put, queue) = (model.queues()[of.0].slots[of.1], &model.queues()[to]);
                if put.notice {
                    let here = self.notices_of(to);
                    self.notices.insert(here.end, (to as u16, k));
                    if here.len() == queue.notices + queue.early {
                        return Err(Violation::Notices { queue: to });
                    }
                }
                let pointers = &mut self.queues[to];
                pointers.scheduled += u32::from(put.sps);
                match queue.ahead {
                    Some(_) if pointers.scheduled - pointers.read >= queue.depth => {
                        Err(Violation::Credit { queue: to })
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Checks a state in which no further event is possible.
    pub(super) fn rest<T: Model<Memory = M, Data = D>>(&self, model: &T) -> Result<(), Violation> {
        if let Some(member) = self.rounds.iter().position(|rounds| rounds.ended < model.iterations()) {
            return Err(Violation::Stuck { member });
        }
        for (at, (pointers, queue)) in self.queues.iter().zip(model.queues()).enumerate() {
            if queue.ahead.is_some() && pointers.scheduled != pointers.write + queue.left {
                return Err(Violation::Credit { queue: at });
            }
        }
        match self.notices.first() {
            None => Ok(()),
            Some((queue, _)) => Err(Violation::Notices { queue: usize::from(*queue) }),
        }
    }
}
