//! A run of the lock's own code, followed by the model.

use crate::{
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
    /// The word's owner, waiting for it, looked at it.
    Watch,
}

/// A step of the code that the model can't follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The rank that made the step.
    pub rank: usize,
    /// What the code did.
    pub seen: String,
    /// What the model would do.
    pub instead: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}: {}, where the model has {}", self.rank, self.seen, self.instead)
    }
}

/// A run of the code, followed so far in the model.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    model: &'a Model,
    state: State,
}

impl<'a> Replay<'a> {
    /// Starts a replay in the initial state.
    pub fn new(model: &'a Model) -> Self {
        Replay { model, state: model.start() }
    }

    /// Makes the model post its puts as soon as it can: posting changes no memory, so it is not
    /// observed.
    fn post(&mut self, rank: usize) -> Result<(), Violation> {
        while let Some(Op::Put(..)) = self.model.pending(&self.state, rank).map(|pending| pending.op) {
            self.model.take(&mut self.state, Move::Step(rank)).1?;
        }
        Ok(())
    }

    /// Follows an access of the code: the word held `bits` or, after a put or store, holds them
    /// now.
    ///
    /// # Errors
    /// If the model can't do the same now: the same operand at the same word with the same result.
    /// A rank's loads of its own words that are no step of the model must find what the model's
    /// memory holds.
    pub fn see(&mut self, rank: usize, word: Word, seen: Access, bits: u64) -> Result<(), Refused> {
        let refused = |instead: String| Refused { rank, seen: format!("{seen:x?} of {bits:#x} at {word:?}"), instead };
        self.post(rank).map_err(|wrong| refused(wrong.to_string()))?;
        let (model, state) = (self.model, &mut self.state);
        let pending = model.pending(state, rank);
        let op = pending.map(|pending| pending.op);
        let next = match (seen, op) {
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
            return Err(refused(format!("{pending:x?}, and {word:?} holds {holds:#x}")));
        };
        model.take(state, next).1.map_err(|wrong| refused(wrong.to_string()))?;
        self.post(rank).map_err(|wrong| refused(wrong.to_string()))
    }

    /// Returns whether the model could continue from here.
    pub fn can_go_on(&self) -> bool {
        !self.model.moves(&self.state).is_none()
    }

    /// Checks that the model has ended too, when the code has.
    ///
    /// # Errors
    /// If it has not ended, or not properly.
    pub fn end(&self) -> Result<(), Violation> {
        self.model.end(&self.state)
    }
}
