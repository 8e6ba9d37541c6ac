//! What a rank does next, and what came of it.

use crate::words::Word;
use rdma_fabric::Amo;
use std::fmt;

/// One operation, or one access to own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A remote atomic; yields the word before.
    Atomic(Word, Amo<u64>),
    /// A remote get.
    Get(Word),
    /// Posting a put. It arrives at any time ([`Move::Arrive`]).
    Put(Word, u64),
    /// An own word is read.
    Load(Word),
    /// An own word is written.
    Store(Word, u64),
    /// An own word is waited for until it has this value.
    Watch(Word, u64),
}

/// Which of its puts a rank flushes before it goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flushed {
    /// None.
    Nothing,
    /// That to the head.
    Head,
    /// All.
    All,
}

/// What a rank is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// What.
    pub op: Op,
    /// Only when these have arrived.
    pub after: Flushed,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A rank does what it is about to do.
    Step(usize),
    /// A rank's put to the head or the data arrives.
    Arrive(usize, Word),
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Who did it.
    pub rank: usize,
    /// `None`: a put arrived.
    pub op: Option<Op>,
    /// Where.
    pub word: Word,
    /// What was found, or has arrived.
    pub bits: u64,
}

impl Op {
    /// The word it is at.
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
