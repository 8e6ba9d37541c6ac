//! A search of all states of a model.

use crate::{
    canonical,
    model::{Model, Violation},
    op::{Done, Move},
    state::State,
};
use explore::space::{self, End, Halt, HaltOf, Key, OutcomeOf, System, Whole};
use std::{convert::Infallible, fmt, ops::ControlFlow};

pub use explore::space::Progress;

/// The outcome of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All states were seen.
    Exhausted,
    /// The limit on states was reached and unexplored states remain, or the caller asked to stop.
    Stopped,
    /// A violation, and the moves that lead to it.
    Broken(Violation, Vec<String>),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of states seen; equivalent states [count as one](crate#states-that-count-as-one).
    pub states: u64,
    /// The number of moves made from them.
    pub transitions: u64,
    /// The number of moves in the longest path taken from the initial state.
    pub longest: usize,
    /// The number of proper end states.
    pub ends: u64,
    /// Whether all readers were inside at the same time in some state.
    pub together: bool,
    /// The outcome.
    pub verdict: Verdict,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { states, transitions, longest, .. } = self;
        write!(f, "{states} states, {transitions} transitions, longest path {longest}: ")?;
        match &self.verdict {
            Verdict::Exhausted => write!(f, "exhausted"),
            Verdict::Stopped => write!(f, "stopped there"),
            Verdict::Broken(wrong, path) => {
                write!(f, "{wrong}")?;
                path.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// A search of a [`Model`].
pub struct Search<'a> {
    model: &'a Model,
    limit: u64,
    at_once: bool,
    whole: bool,
    watch: Box<Watch<'a>>,
    look: Box<dyn FnMut(&State) + 'a>,
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Search({:?}, at most {} states)", self.model, self.limit)
    }
}

impl<'a> Search<'a> {
    /// Prepares a search of all states of `model`.
    pub fn new(model: &'a Model) -> Self {
        let watch = Box::new(|_: &Progress| ControlFlow::Continue(()));
        Search { model, limit: u64::MAX, at_once: true, whole: false, watch, look: Box::new(|_| ()) }
    }

    /// Stops at this number of states. Each takes 17 to 34 bytes, and up to 51 while the set grows.
    #[must_use]
    pub fn limit(mut self, states: u64) -> Self {
        self.limit = states;
        self
    }

    /// Makes no moves [immediately](crate#what-happens-at-once): each becomes a separate
    /// transition.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.at_once = false;
        self
    }

    /// Does not treat any two states [as one](crate#states-that-count-as-one). The set then stores
    /// whole states of about 500 bytes each.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Reports the progress to `watch` from time to time, and stops if it returns `Break`.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(&Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Calls `look` once for each state.
    #[must_use]
    pub fn look(mut self, look: impl FnMut(&State) + 'a) -> Self {
        self.look = Box::new(look);
        self
    }

    /// Searches all states of the model, or until the first violation.
    pub fn run(self) -> Report {
        let Search { model, limit, at_once, whole, mut watch, mut look } = self;
        let classes = canonical::classes(model);
        let fingerprint = |state: &State| canonical::fingerprint(model, &classes, state);
        let steps = Steps { model, at_once };
        let search = space::Search::new().limit(limit).watch(&mut *watch);
        let (found, together) = if whole {
            Space::new(steps, Whole::of, &mut *look).searched(search)
        } else {
            Space::new(steps, fingerprint, &mut *look).searched(search)
        };
        let verdict = match found.end {
            End::Exhausted => Verdict::Exhausted,
            End::Limit | End::Asked => Verdict::Stopped,
            End::Violated(wrong, moves) => {
                let Ok(nearest) = space::shortest(&mut Space::new(steps, fingerprint, &mut |_| ()), space::NEAR);
                let (wrong, moves) = nearest.unwrap_or((wrong, moves));
                Verdict::Broken(wrong, steps.told(&moves))
            }
        };
        let space::Progress { states, transitions, longest, ends, .. } = found.progress;
        // One more state than the limit was met, but not visited.
        Report { states: states.min(limit.max(1)), transitions, longest, ends, together, verdict }
    }
}

/// The moves of a model, as a search makes them.
#[derive(Clone, Copy)]
struct Steps<'a> {
    model: &'a Model,
    at_once: bool,
}

impl Steps<'_> {
    fn first(self, mut note: impl FnMut(Done)) -> Result<State, Violation> {
        let mut state = self.model.start();
        if self.at_once {
            self.model.settle(&mut state, &mut note)?;
        }
        Ok(state)
    }

    fn take(self, state: &mut State, by: Move, mut note: impl FnMut(Done)) -> Result<(), Violation> {
        let (done, went) = self.model.take(state, by);
        note(done);
        went?;
        if self.at_once { self.model.settle(state, note) } else { Ok(()) }
    }

    /// Returns a description of a path, one line per move.
    fn told(self, moves: &[Move]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut note = |done: Done| lines.push(done.to_string());
        if let Ok(mut state) = self.first(&mut note) {
            // The last move may be the violation.
            let _ = moves.iter().try_for_each(|by| self.take(&mut state, *by, &mut note));
        }
        lines
    }
}

/// A model as a transition system.
struct Space<'a, F> {
    steps: Steps<'a>,
    /// Identifies states.
    key: F,
    look: &'a mut dyn FnMut(&State),
    /// Whether all readers were inside at the same time in some state.
    together: bool,
}

impl<'a, F, K: Key> Space<'a, F>
where
    F: Fn(&State) -> K,
{
    fn new(steps: Steps<'a>, key: F, look: &'a mut dyn FnMut(&State)) -> Self {
        Space { steps, key, look, together: false }
    }

    fn searched(mut self, search: space::Search<'_>) -> (OutcomeOf<Self>, bool) {
        let Ok(found) = search.run(&mut self);
        (found, self.together)
    }
}

impl<F, K: Key> System for Space<'_, F>
where
    F: Fn(&State) -> K,
{
    type State = State;
    type Move = Move;
    type Violation = Violation;
    type Abort = Infallible;
    type Key = K;

    fn first(&mut self) -> Result<State, HaltOf<Self>> {
        self.steps.first(|_| ()).map_err(Halt::Violation)
    }

    fn apply(&mut self, state: &mut State, by: Move) -> Result<(), HaltOf<Self>> {
        self.steps.take(state, by, |_| ()).map_err(Halt::Violation)
    }

    fn visit(&mut self, state: &State, moves: &mut Vec<Move>) -> Result<bool, HaltOf<Self>> {
        let model = self.steps.model;
        (self.look)(state);
        self.together |= model.all_readers_inside(state);
        moves.extend(model.moves(state));
        if moves.is_empty() {
            model.end(state).map_err(Halt::Violation)?;
        }
        Ok(moves.is_empty())
    }

    fn key(&self, state: &State) -> K {
        (self.key)(state)
    }
}
