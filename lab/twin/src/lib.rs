//! Explicit-state models of the queue-based locks, small enough for an exhaustive search, which the
//! code itself is not.
//!
//! `onesided-explore` runs the locks' own source under every delivery order. There, every action
//! and every result of a rank's program adds a state, so jobs of four ranks with two rounds are out
//! of reach. This crate searches the locks' own tables of steps ([`rma_lock::steps`]) without the
//! code that drives them. A state consists of the words, the puts in flight, and the position of
//! each rank. Only the level of nodes is specified a second time.
//!
//! A model is evidence about the code only as far as both behave the same.
//! `crates/rma-lock/tests/it/twin` checks that they do:
//! * The model follows runs of the code access by access ([`Replay`]), including runs that take
//!   fast paths ([`Replay::at_once`]).
//! * In small jobs, the shared words take exactly the same set of values in both.
//! * Code and models with [mutated steps](Mutant) do not match each other.
//!
//! `docs/evidence/verification.md` lists the searches that were run.
//!
//! # Covered by the models
//! * [`Lock`]: the three locks that count readers in one word, as one transition system with the
//!   code's own parameters; the fair lock; and the level of nodes below the flat lock.
//! * The path of the code for operations that take time and puts that are not ordered: the weakest
//!   capabilities, which the explorer also uses. An atomic or get takes effect at any time after
//!   its rank has reached it, and its rank receives the result immediately. (The code may receive
//!   it later, but other ranks cannot observe the difference before its next access.) A put arrives
//!   at any time until its rank waits for a flush of it. Memory is sequentially consistent.
//! * Between any two accesses of a rank to shared words, any steps of other ranks may happen.
//!
//! # Not covered
//! Giving up, tries, dropped futures, lost ranks; other capabilities; more than five ranks, and
//! more than two rounds (a rank has two of its four nodes); the words that a rank publishes about
//! itself, which no rank reads. A run that exceeds the model's capacity is reported
//! ([`Violation::NoRoom`]).
//!
//! # Checked properties
//! In every state: a writer is [alone](Violation::Exclusion) inside, from the moment it knows that
//! it is inside until the operation that admits others; a rank that enters sees the [last
//! version](Violation::Missed) of the data; no word is [corrupt](Violation::Corrupt). In every
//! state without a further move: all ranks have [ended](Violation::Deadlock), and all words are [at
//! rest](Violation::Residue).
//!
//! # What happens at once
//! Moves that commute with all steps of other ranks are made as soon as they are possible, unless
//! [`Search::apart`] is set: continuing after a wait, stores to a rank's own words that no other
//! rank reads at the time, loads of words that are no longer written, reading the data. The source
//! of `step.rs` contains the proof.
//!
//! # States that count as one
//! States that differ only in the names of equal ranks, the numbers of turns, or links that are no
//! longer read have the same fingerprint, unless [`Search::whole`] is set. The source of
//! `canonical.rs` contains the proof and the probability of a collision.

#![forbid(unsafe_code)]

mod canonical;
mod immediate;
mod level;
mod model;
mod mutant;
mod op;
mod replay;
mod required;
mod search;
mod state;
mod step;
mod turn;
mod walk;
mod words;

pub use model::{Lock, Model, Role, Violation};
pub use mutant::Mutant;
pub use op::{Done, Flushed, Move, Op, Pending};
pub use replay::{Access, Refused, Replay};
pub use required::Case;
pub use search::{Progress, Report, Search, Verdict};
pub use state::{MOST_RANKS, Rank, State};
pub use words::Word;
