//! Session queues of small jobs, and a network with any behaviour that the contract allows.
//!
//! A model consists of members that start and end iterations, and their queues, filled with the
//! same slots in each. A queue starts its next slot as soon as it is released, or later; puts from
//! one queue to another arrive in order, all other events occur in any order; members start and end
//! at any time. The effects of puts, besides releasing slots, are defined by the model: it has its
//! own state, which it changes and checks with every event.
//!
//! [`explore`] explores all orders of events, [`walk`] one random order.

use core::{hash::Hash, ops::Range};
use std::collections::HashSet;

/// The effect of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// The queue that it puts to; `None` for a NOP.
    pub(crate) to: Option<usize>,
    /// Slots of that queue that it releases.
    pub(crate) sps: u8,
    pub(crate) notice: bool,
}

/// A queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) member: usize,
    /// The slots of an iteration; a command of several blocks is several slots.
    pub(crate) slots: Vec<Slot>,
    /// The number of slots that need no credit; `None` if no slot does, in a normal queue.
    pub(crate) ahead: Option<u32>,
    /// The remaining credit after the last event.
    pub(crate) left: u32,
    /// The limit that credit must not reach.
    pub(crate) depth: u32,
    /// Notices of an iteration.
    pub(crate) notices: usize,
    /// Notices that may arrive before the iteration that they belong to.
    pub(crate) early: usize,
}

/// The behaviour of members, queues and puts.
pub(crate) trait Model {
    /// The observable state besides queues.
    type Memory: Clone + Eq + Hash;
    /// The data of a put.
    type Data: Clone + Eq + Hash;

    fn queues(&self) -> &[Queue];
    fn members(&self) -> usize;
    fn iterations(&self) -> u8;
    fn memory(&self) -> Self::Memory;

    /// Returns whether queues start all released slots immediately, and never later: then
    /// [`Model::leave`] must see all that a later start could see.
    fn prompt(&self) -> bool {
        false
    }

    /// Returns whether events at `member` may be late. At other members, they occur as soon as
    /// possible.
    fn slow(&self, member: usize) -> bool {
        let _ = member;
        true
    }

    /// The effect on memory when `member` starts iteration `k`.
    fn start(&self, memory: &mut Self::Memory, member: usize, k: u8) -> Result<(), Wrong> {
        let _ = (memory, member, k);
        Ok(())
    }

    /// Starts a put of iteration `k`, slot `of.1` of queue `of.0`, and returns its data.
    fn leave(&self, memory: &mut Self::Memory, of: (usize, usize), k: u8) -> Result<Self::Data, Wrong>;

    /// The effect on memory when a put arrives.
    fn arrive(&self, memory: &mut Self::Memory, rounds: &[Rounds], put: Arrival<'_, Self::Data>) -> Result<(), Wrong> {
        let _ = (memory, rounds, put);
        Ok(())
    }

    /// Checks memory when `member` ends iteration `k`.
    fn end(&self, memory: &mut Self::Memory, rounds: &[Rounds], member: usize, k: u8) -> Result<(), Wrong> {
        let _ = (memory, rounds, member, k);
        Ok(())
    }
}

/// A put that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a, D> {
    /// Its queue and slot.
    pub(crate) of: (usize, usize),
    /// Its iteration.
    pub(crate) k: u8,
    pub(crate) data: &'a D,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// An error found by the model.
    Memory(String),
    /// No further event is possible, and a member has not ended.
    Stuck { member: usize },
    /// Credit was a whole ring ahead, or the remaining amount is wrong.
    Credit { queue: usize },
    /// A notice of another iteration, or too many notices.
    Notices { queue: usize },
}

/// Iterations that a member has started, and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rounds {
    pub(crate) started: u8,
    pub(crate) ended: u8,
}

/// The pointers of a queue, in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Pointers {
    read: u32,
    write: u32,
    scheduled: u32,
}

/// A put in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight<D> {
    /// From one queue to another.
    wire: (u16, u16),
    slot: u16,
    k: u8,
    data: D,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<M, D> {
    queues: Vec<Pointers>,
    rounds: Vec<Rounds>,
    /// The puts in flight, by wire; those of one wire in order.
    flying: Vec<Flight<D>>,
    /// The iterations of the notices that have arrived, by queue; those of one queue in order.
    notices: Vec<(u16, u8)>,
    memory: M,
}

/// A possible next event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A member starts an iteration.
    Start(usize),
    /// A member ends an iteration.
    End(usize),
    /// A queue starts its next slot.
    Leave(usize),
    /// A put arrives, the first of its wire.
    Arrive(usize),
}

type StateOf<T> = State<<T as Model>::Memory, <T as Model>::Data>;

/// Returns the state before all events.
fn start<T: Model>(model: &T) -> StateOf<T> {
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
    fn events<T: Model<Memory = M, Data = D>>(&self, model: &T) -> Vec<Event> {
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
            if rounds.started > rounds.ended && queues().enumerate().all(over) {
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
    fn happen<T: Model<Memory = M, Data = D>>(&mut self, model: &T, event: Event) -> Result<(), Wrong> {
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
                        return Err(Wrong::Notices { queue: at });
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
                        return Err(Wrong::Notices { queue: to });
                    }
                }
                let pointers = &mut self.queues[to];
                pointers.scheduled += u32::from(put.sps);
                match queue.ahead {
                    Some(_) if pointers.scheduled - pointers.read >= queue.depth => Err(Wrong::Credit { queue: to }),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Checks a state in which no further event is possible.
    fn rest<T: Model<Memory = M, Data = D>>(&self, model: &T) -> Result<(), Wrong> {
        if let Some(member) = self.rounds.iter().position(|rounds| rounds.ended < model.iterations()) {
            return Err(Wrong::Stuck { member });
        }
        for (at, (pointers, queue)) in self.queues.iter().zip(model.queues()).enumerate() {
            if queue.ahead.is_some() && pointers.scheduled != pointers.write + queue.left {
                return Err(Wrong::Credit { queue: at });
            }
        }
        match self.notices.first() {
            None => Ok(()),
            Some((queue, _)) => Err(Wrong::Notices { queue: usize::from(*queue) }),
        }
    }
}

/// Explores all orders of events; returns the number of states.
pub(crate) fn explore<T: Model>(model: &T) -> Result<usize, Wrong> {
    let start = start(model);
    let (mut seen, mut open): (HashSet<StateOf<T>>, Vec<StateOf<T>>) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = open.pop() {
        let events = state.events(model);
        if events.is_empty() {
            state.rest(model)?;
        }
        for event in events {
            let mut next = state.clone();
            next.happen(model, event)?;
            if !seen.contains(&next) {
                seen.insert(next.clone());
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

/// Random numbers that are reproducible by a seed.
struct Chance(u64);

impl Chance {
    /// Returns a number below `many`.
    fn below(&mut self, many: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % many as u64) as usize
    }
}

/// Executes one random order of events, in which one member is slow, as are the puts of one queue.
pub(crate) fn walk<T: Model>(model: &T, seed: u64) -> Result<(), Wrong> {
    let mut chance = Chance(seed);
    let (slow, lame) = (chance.below(model.members()), chance.below(model.queues().len().max(1)) as u16);
    let mut state = start(model);
    loop {
        let events = state.events(model);
        if events.is_empty() {
            return state.rest(model);
        }
        let quick = |event: &&Event| match event {
            Event::Start(member) | Event::End(member) => *member != slow,
            Event::Leave(_) => true,
            Event::Arrive(at) => state.flying[*at].wire.0 != lame,
        };
        let quick: Vec<Event> = events.iter().filter(quick).copied().collect();
        let from = if quick.is_empty() || chance.below(64) == 0 { &events } else { &quick };
        state.happen(model, from[chance.below(from.len())])?;
    }
}
