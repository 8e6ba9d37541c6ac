//! A rank's next operation, and its outcome.

use crate::words::Word;
use rdma_fabric::Amo;
use std::fmt;

/// One operation, or one access of a rank to its own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A remote atomic; it returns the word's previous value.
    Atomic(Word, Amo<u64>),
    /// A remote get.
    Get(Word),
    /// Posting a put. It arrives at any time ([`Move::Arrive`]).
    Put(Word, u64),
    /// Reading one of the rank's own words.
    Load(Word),
    /// Writing one of the rank's own words.
    Store(Word, u64),
    /// Waiting until one of the rank's own words differs from this value.
    Watch(Word, u64),
}

/// The puts that a rank flushes before it continues.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flushed {
    /// None.
    Nothing,
    /// The put to the head.
    Head,
    /// All.
    All,
}

/// The pending operation of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The operation.
    pub op: Op,
    /// The puts that must have arrived before it.
    pub after: Flushed,
}

/// A move of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A rank executes its pending operation.
    Step(usize),
    /// A rank's put to the head or the data arrives.
    Arrive(usize, Word),
}

/// The outcome of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The rank that made the move.
    pub rank: usize,
    /// The operation; `None` if a put arrived.
    pub op: Option<Op>,
    /// The word that was accessed.
    pub word: Word,
    /// The value that was found, or that has arrived.
    pub bits: u64,
}

impl Op {
    /// Returns the word that the operation accesses.
    pub fn word(&self) -> Word {
        match *self {
            Op::Atomic(word, _)
            | Op::Get(word)
            | Op::Put(word, _)
            | Op::Load(word)
            | Op::Store(word, _)
            | Op::Watch(word, _) => word,
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { rank, word, bits, .. } = self;
        match self.op {
            None => write!(f, "rank {rank}: its put of {bits:#x} arrives at {word:?}"),
            Some(Op::Atomic(_, amo)) => write!(f, "rank {rank}: {amo:x?} at {word:?} finds {bits:#x}"),
            Some(Op::Get(_)) => write!(f, "rank {rank}: gets {bits:#x} from {word:?}"),
            Some(Op::Put(_, bits)) => write!(f, "rank {rank}: puts {bits:#x} to {word:?}"),
            Some(Op::Load(_)) => write!(f, "rank {rank}: loads {bits:#x} from {word:?}"),
            Some(Op::Store(_, bits)) => write!(f, "rank {rank}: stores {bits:#x} in {word:?}"),
            Some(Op::Watch(..)) => write!(f, "rank {rank}: wakes, {word:?} is {bits:#x}"),
        }
    }
}
