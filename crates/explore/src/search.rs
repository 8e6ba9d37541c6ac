//! A job as a [transition system](System), and the run of a given schedule.

use crate::{
    checks::Checks,
    space::{self, HaltOf, System},
    state::State,
    timeline::Timeline,
    world::{Halt, Move, World},
};
use rdma_fabric::Rank;
use std::collections::BTreeMap;

/// A cell was wrongly treated as private: explore again.
#[derive(Debug)]
pub(crate) struct Again;

/// All runs of a job.
pub(crate) struct Runs<'s, 'a> {
    pub(crate) world: &'s mut World<'a>,
    pub(crate) checks: &'s Checks<'s>,
    /// The number of atomics that read their word at one moment and write it at a later one.
    pub(crate) parted: u64,
    /// For each rank with an endless step, the acts that it repeats there.
    pub(crate) endless: BTreeMap<Rank, String>,
}

impl<'s, 'a> Runs<'s, 'a> {
    pub(crate) fn new(world: &'s mut World<'a>, checks: &'s Checks<'s>) -> Self {
        Runs { world, checks, parted: 0, endless: BTreeMap::new() }
    }

    fn halted(&mut self, halt: Halt) -> HaltOf<Self> {
        match halt {
            Halt::Again => space::Halt::Abort(Again),
            Halt::Failure(what) => space::Halt::Violation(what),
            Halt::Endless(rank, local) => {
                let automaton = &self.world.automaton;
                self.endless.entry(rank).or_insert_with(|| automaton.again_and_again(local));
                space::Halt::Pruned
            }
        }
    }
}

impl System for Runs<'_, '_> {
    type State = State;
    type Move = Move;
    type Violation = String;
    type Abort = Again;
    type Key = u128;

    fn first(&mut self) -> Result<State, HaltOf<Self>> {
        let mut state = State::default();
        self.world.start(&mut state).map_err(|halt| self.halted(halt))?;
        Ok(state)
    }

    fn apply(&mut self, state: &mut State, which: Move) -> Result<(), HaltOf<Self>> {
        self.parted += u64::from(matches!(which, Move::Begin(..)));
        self.world.act(state, which).map_err(|halt| self.halted(halt))
    }

    fn visit(&mut self, state: &State, moves: &mut Vec<Move>) -> Result<bool, HaltOf<Self>> {
        visit(self.world, self.checks, state, moves).map_err(|halt| self.halted(halt))
    }

    fn key(&self, state: &State) -> u128 {
        state.hash()
    }
}

/// Checks `state` and finds its moves. Returns true if it is an end.
fn visit(world: &mut World<'_>, checks: &Checks<'_>, state: &State, moves: &mut Vec<Move>) -> Result<bool, Halt> {
    checks.always(state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
    world.moves(state, moves)?;
    // A death may happen, but need not.
    if moves.iter().any(|which| !matches!(which, Move::Die(_))) {
        return Ok(false);
    }
    let ranks = 0..state.ranks.len() as u32;
    let waiting = ranks.filter_map(|rank| world.waits_for(state, Rank::new(rank)).transpose());
    let waiting = waiting.collect::<Result<Vec<_>, _>>()?;
    if !waiting.is_empty() {
        return Err(Halt::Failure(format!("deadlock: nothing is on its way, and {}", waiting.join("; "))));
    }
    checks.at_end(state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
    Ok(true)
}

/// Follows exactly these moves. Returns the violation, if there is one, and the timeline.
pub(crate) fn follow(world: &mut World<'_>, checks: &Checks<'_>, moves: &[Move]) -> (Option<String>, Vec<String>) {
    world.timeline = Some(Timeline::default());
    let mut state = State::default();
    let wrong = (|| {
        world.start(&mut state)?;
        for which in moves {
            world.act(&mut state, *which)?;
            checks.always(&state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
        }
        visit(world, checks, &state, &mut Vec::new()).map(drop)
    })();
    let mut timeline = world.timeline.take().unwrap_or_default();
    timeline.ends(&world.automaton.job.cells.borrow(), &state);
    let lines = timeline.into_lines();
    match wrong {
        Err(Halt::Failure(what)) => (Some(what), lines),
        Err(Halt::Again) => {
            (Some("the schedule is of another program: it does not know all memory that is shared".into()), lines)
        }
        Ok(()) | Err(Halt::Endless(..)) => (None, lines),
    }
}
