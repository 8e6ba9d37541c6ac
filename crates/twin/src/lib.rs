//! Explicit-state models of the locks with queues: twins of their code, small enough to be searched
//! exhaustively where the code itself is not.
//!
//! `onesided-explore` runs the locks' own source under every delivery order. There, everything that
//! a rank's program does or learns makes a new state, so jobs of four ranks with two rounds are out
//! of reach. Here the locks' own tables of steps ([`rma_lock::steps`]) are searched without the code
//! that drives them. A state consists of the words, the puts in flight, and the position of each
//! rank. Only the level of nodes is written down a second time.
//!
//! A model proves something about the code only as far as both do the same.
//! `crates/rma-lock/tests/it/twin` checks that they do: runs of the code are followed in the model,
//! access by access ([`Replay`]), also where they take short paths ([`Replay::at_once`]); in small
//! jobs the shared words take the same values in both, no more and no fewer; code and models with
//! [steps done wrong](Mistake) do not fit each other.
//! `docs/evidence/verification.md` says what was searched.
//!
//! # What is in a model
//! * [`Lock`]: the three locks that count readers in one word, as one transition system with the
//!   code's own parameters; the fair lock; and the level of nodes below the flat lock.
//! * The path that the code takes where operations take time and puts are not ordered: the weakest
//!   capabilities, which the explorer uses too. An atomic or get takes effect at any time after its
//!   rank has reached it, and its rank knows the result at once. (In the code it may learn it
//!   later, but nobody sees what it does before its next access.) A put arrives at any time until
//!   its rank waits for a flush of it. Memory is sequentially consistent.
//! * Between any two accesses of a rank to shared words, anything else may happen.
//!
//! # What is not in a model
//! Giving up, tries, dropped futures, lost ranks; other capabilities; more than five ranks, and
//! more than two rounds (a rank has two of its four nodes); the words that a rank publishes about
//! itself, which nobody reads. A run that needs more than there is room for is reported
//! ([`Violation::NoRoom`]).
//!
//! # What is checked
//! In every state: a writer is [alone](Violation::Exclusion) inside, from the moment it knows that
//! it is inside until the operation that lets others in; a rank that enters sees the [last
//! version](Violation::Missed) of the data; no word is [corrupt](Violation::Corrupt). In every
//! state without a further move: all ranks have [ended](Violation::Deadlock), and all words are [at
//! rest](Violation::Residue).
//!
//! # What happens at once
//! Moves that commute with everything that other ranks do are made as soon as they are possible,
//! unless [`Search::apart`] is asked for: continuing after a wait, stores to a rank's own words
//! that nobody else reads at the time, loads of words that are no longer written, looking at the
//! data. The source of `step.rs` has the argument.
//!
//! # States that count as one
//! States that differ only in the names of equal ranks, the numbers of turns, or links that are no
//! longer read have the same fingerprint, unless [`Search::whole`] is asked for. The source of
//! `canonical.rs` has the argument, and the probability of a collision.

#![forbid(unsafe_code)]

mod at_once;
mod canonical;
mod level;
mod mistake;
mod model;
mod op;
mod replay;
mod required;
mod search;
mod state;
mod step;
mod turn;
mod walk;
mod words;

pub use mistake::Mistake;
pub use model::{Lock, Model, Role, Violation};
pub use op::{Done, Flushed, Move, Op, Pending};
pub use replay::{Access, Refused, Replay};
pub use required::Case;
pub use search::{Progress, Report, Search, Verdict};
pub use state::{MOST_RANKS, Rank, State};
pub use words::Word;
