//! Session queues of small jobs, and a network with any behaviour that the contract allows.
//!
//! A model consists of members that start and end iterations, and their queues, filled with the
//! same slots in each. A queue starts its next slot as soon as it is released, or later; puts from
//! one queue to another arrive in order, all other events occur in any order; members start and end
//! at any time. The effects of puts, apart from releasing slots, are defined by the model: it has
//! its own state, which it changes and checks with every event.
//!
//! [`explore`] explores all orders of events, [`walk`] one random order.

mod state;

use core::{convert::Infallible, hash::Hash};
use explore::space::{End, Halt, HaltOf, Search, System, Whole};
use state::{Event, StateOf, start};

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
    /// Notices that may arrive before the iteration to which they belong.
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
    fn start(&self, memory: &mut Self::Memory, member: usize, k: u8) -> Result<(), Violation> {
        let _ = (memory, member, k);
        Ok(())
    }

    /// Starts a put of iteration `k`, slot `of.1` of queue `of.0`, and returns its data.
    fn leave(&self, memory: &mut Self::Memory, of: (usize, usize), k: u8) -> Result<Self::Data, Violation>;

    /// The effect on memory when a put arrives.
    fn arrive(
        &self,
        memory: &mut Self::Memory,
        rounds: &[Rounds],
        put: Arrival<'_, Self::Data>,
    ) -> Result<(), Violation> {
        let _ = (memory, rounds, put);
        Ok(())
    }

    /// Returns whether `member`, which has all its notices of iteration `k`, may end it.
    fn may_end(&self, memory: &Self::Memory, member: usize, k: u8) -> bool {
        let _ = (memory, member, k);
        true
    }

    /// Checks memory when `member` ends iteration `k`.
    fn end(&self, memory: &mut Self::Memory, rounds: &[Rounds], member: usize, k: u8) -> Result<(), Violation> {
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
pub(crate) enum Violation {
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

/// All orders of events of a model.
struct Orders<'m, T>(&'m T);

impl<T: Model> System for Orders<'_, T> {
    type State = StateOf<T>;
    type Move = Event;
    type Violation = Violation;
    type Abort = Infallible;
    type Key = Whole<StateOf<T>>;

    fn first(&mut self) -> Result<StateOf<T>, HaltOf<Self>> {
        Ok(start(self.0))
    }

    fn apply(&mut self, state: &mut StateOf<T>, event: Event) -> Result<(), HaltOf<Self>> {
        state.happen(self.0, event).map_err(Halt::Violation)
    }

    fn visit(&mut self, state: &StateOf<T>, events: &mut Vec<Event>) -> Result<bool, HaltOf<Self>> {
        *events = state.events(self.0);
        if events.is_empty() {
            state.rest(self.0).map_err(Halt::Violation)?;
        }
        Ok(events.is_empty())
    }

    fn key(&self, state: &StateOf<T>) -> Self::Key {
        Whole::of(state)
    }
}

/// Explores all orders of events; returns the number of states.
pub(crate) fn explore<T: Model>(model: &T) -> Result<usize, Violation> {
    let Ok(found) = Search::new().run(&mut Orders(model));
    match found.end {
        End::Violated(wrong, _) => Err(wrong),
        _ => Ok(found.progress.states as usize),
    }
}

/// Executes one random order of events, in which one member is slow, as are the puts of one queue.
pub(crate) fn walk<T: Model>(model: &T, seed: u64) -> Result<(), Violation> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let (slow, lame) = (chance.usize(..model.members()), chance.usize(..model.queues().len().max(1)) as u16);
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
        let from = if quick.is_empty() || chance.usize(..64) == 0 { &events } else { &quick };
        state.happen(model, from[chance.usize(..from.len())])?;
    }
}
