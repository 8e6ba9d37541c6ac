//! Runs of the lock's own code, followed in the model.

use crate::{
    immediate,
    model::{Model, Violation},
    op::{Move, Op},
    state::State,
    words::{HEAD, Word},
};
use rdma_fabric::Amo;
use std::fmt;

/// An access of the code to a word, as observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A remote atomic took effect.
    Atomic(Amo<u64>),
    /// A get read the word.
    Get,
    /// A put arrived.
    Put,
    /// The word's owner read it.
    Load,
    /// The word's owner wrote it.
    Store,
    /// The word's owner read it while waiting on it.
    Watch,
}

/// A step of the code that the model cannot follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The rank that made the step.
    pub rank: usize,
    /// The step of the code.
    pub seen: String,
    /// The step that the model would make instead.
    pub instead: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}: {}, where the model has {}", self.rank, self.seen, self.instead)
    }
}

/// A run of the code, with the model at the same point.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    model: &'a Model,
    /// The states in which the model may be: one, unless the replay was started by
    /// [`Replay::at_once`].
    states: Vec<State>,
    at_once: bool,
}

/// An access of a rank to a word, and the value that it found or left there.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) rank: usize,
    pub(crate) word: Word,
    pub(crate) access: Access,
    pub(crate) bits: u64,
}

impl Seen {
    fn refused(&self, instead: String) -> Refused {
        let Seen { rank, word, access, bits } = self;
        Refused { rank: *rank, seen: format!("{access:x?} of {bits:#x} at {word:?}"), instead }
    }

    /// Follows the access in one state.
    pub(crate) fn follow(self, model: &Model, state: &mut State) -> Result<(), Refused> {
        let Seen { rank, word, access, bits } = self;
        post(model, state, rank).map_err(|wrong| self.refused(wrong.to_string()))?;
        let pending = model.pending(state, rank);
        let op = pending.map(|pending| pending.op);
        let next = match (access, op) {
            (Access::Put, _) => {
                let from = &state.ranks[rank];
                let put = if word == HEAD { from.head_put } else { u64::from(from.data_put) };
                let there = matches!(word, HEAD | Word::Data) && put == bits && bits != 0;
                there.then_some(Move::Arrive(rank, word))
            }
            (Access::Store, Some(Op::Store(at, value))) if (at, value) == (word, bits) => Some(Move::Step(rank)),
            (Access::Store, _) => None,
            _ if state.read(word) != bits => None,
            (Access::Atomic(did), Some(Op::Atomic(at, amo))) if (at, amo) == (word, did) => Some(Move::Step(rank)),
            (Access::Get, Some(Op::Get(at))) if at == word => Some(Move::Step(rank)),
            (Access::Load, Some(Op::Load(at))) if at == word => Some(Move::Step(rank)),
            (Access::Load, _) => return Ok(()),
            (Access::Watch, Some(Op::Watch(at, value))) if at == word => {
                if value == bits {
                    return Ok(());
                }
                Some(Move::Step(rank))
            }
            _ => None,
        };
        let possible = |next: &Move| matches!(next, Move::Arrive(..)) || model.can_step(state, rank);
        let Some(next) = next.filter(possible) else {
            let holds = state.read(word);
            return Err(self.refused(format!("{pending:x?}, and {word:?} holds {holds:#x}")));
        };
        model.take(state, next).1.map_err(|wrong| self.refused(wrong.to_string()))?;
        post(model, state, rank).map_err(|wrong| self.refused(wrong.to_string()))
    }
}

/// Makes the model post a rank's puts as soon as possible: posting does not change memory, so it
/// cannot be observed in the code's run.
fn post(model: &Model, state: &mut State, rank: usize) -> Result<(), Violation> {
    while let Some(Op::Put(..)) = model.pending(state, rank).map(|pending| pending.op) {
        model.take(state, Move::Step(rank)).1?;
    }
    Ok(())
}

impl<'a> Replay<'a> {
    /// Starts a replay in the initial state.
    pub fn new(model: &'a Model) -> Self {
        Replay { model, states: vec![model.start()], at_once: false }
    }

    /// Starts a replay, in the initial state, of code whose operations complete as they are posted.
    /// Such code takes fast paths, which load words more often than its table does and omit steps
    /// that no other rank can observe; the source of `immediate.rs` lists the differences. So the
    /// model may be in one of several states.
    pub fn at_once(model: &'a Model) -> Self {
        Replay { at_once: true, ..Replay::new(model) }
    }

    /// Follows an access of the code: the word held `bits` or, after a put or store, holds them
    /// now.
    ///
    /// # Errors
    /// If the model cannot make the same access now: the same operand at the same word with the
    /// same result. A rank's loads of its own words that are not steps of the model must find the
    /// value in the model's memory.
    pub fn see(&mut self, rank: usize, word: Word, access: Access, bits: u64) -> Result<(), Refused> {
        let seen = Seen { rank, word, access, bits };
        if !self.at_once {
            return seen.follow(self.model, &mut self.states[0]);
        }
        let (mut after, mut refused) = (Vec::new(), None);
        for state in &self.states {
            let why = immediate::follow(self.model, state, seen, &mut after).err();
            refused = refused.or(why);
        }
        match refused {
            Some(refused) if after.is_empty() => return Err(refused),
            _ => self.states = after,
        }
        Ok(())
    }

    /// Returns the number of states in which the model may be.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// Returns whether the model can continue from here.
    pub fn can_continue(&self) -> bool {
        self.states.iter().any(|state| !self.model.moves(state).is_none())
    }

    /// Checks that the model has ended when the code has ended.
    ///
    /// # Errors
    /// If it has not ended, or not in a proper final state.
    pub fn end(&self) -> Result<(), Violation> {
        let mut ends = self.states.iter().map(|state| self.model.end(state));
        let first = ends.next().unwrap_or(Ok(()));
        if first.is_ok() || ends.any(|end| end.is_ok()) { Ok(()) } else { first }
    }
}
