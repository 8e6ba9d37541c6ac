//! Explicit-state models of the locks with queues: twins of their code, small enough to be searched
//! to the last state where the code itself is not.
//!
//! `onesided-explore` runs the locks' own source under every delivery order. That source takes a
//! state for each thing that a rank's program does and is told, so jobs of four ranks with two
//! rounds are out of its reach. Here each lock is written down once more, as a table of steps
//! ([`Model::pending`]) and of what they lead to ([`Model::take`]), with the very words and values
//! of the code. A state is the words, the puts on their way, and where each rank is.
//!
//! A model proves something about the code as far as both do the same.
//! `crates/rma-lock/tests/it/twin` checks that: runs of the code are followed in the model, access
//! by access ([`Replay`]); in small jobs the shared words come to the same values in both, no more
//! and no fewer; code and models with [steps done wrong](Mistake) do not fit each other.
//! `docs/evidence/verification.md` says what was searched.
//!
//! # What is in a model
//! * [`Lock`]: the three that count readers in one word are one transition system with the code's
//!   own parameters; the fair lock; and the level of nodes below the flat one.
//! * The way that the code takes where results take their time and puts are not ordered: the
//!   weakest capabilities, the explorer's own choice. An atomic or get takes effect at any time
//!   after its rank has come to it, and its rank knows at once. (It may know later in the code;
//!   what it does until its next access nobody sees.) A put arrives at any time until a flush of it
//!   is waited for. Memory is sequentially consistent.
//! * Between any two accesses of a rank to words that others use, anything else may happen.
//!
//! # What is not
//! Giving up, tries, dropped futures, lost ranks; other capabilities; more than five ranks, and
//! more than two rounds (a rank has two of its four nodes); the words that a rank publishes about
//! itself, which nobody reads. Who needs more than there is room for is told so
//! ([`Violation::NoRoom`]).
//!
//! # What is checked
//! In every state: a writer is [alone](Violation::Exclusion) inside, from the moment a rank knows
//! that it is inside until the operation that lets others in; whoever enters sees the [last
//! version](Violation::Missed) of the data; no word is [corrupt](Violation::Corrupt). Where nothing
//! can happen any more: all ranks have [ended](Violation::Deadlock), and all words are [at
//! rest](Violation::Residue).
//!
//! # What happens at once
//! Moves that commute with all that others do are made as soon as they are possible, unless
//! [`Search::apart`] is asked for: going on after a wait, stores to own words that nobody reads
//! then, loads of what is not written any more, looking at the data. The source of `step.rs` has
//! the argument.
//!
//! # What is taken for one
//! States that differ by the names of equal ranks, by the numbers of turns, or by links that are
//! not read any more are known by the same fingerprint, unless [`Search::whole`] is asked for. The
//! source of `canonical.rs` has the argument, and the probability of a collision.

#![forbid(unsafe_code)]

mod canonical;
mod counted;
mod fair;
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
mod words;

pub use mistake::Mistake;
pub use model::{Lock, Model, Role, Violation};
pub use op::{Done, Flushed, Move, Op, Pending};
pub use replay::{Access, Refused, Replay};
pub use required::Case;
pub use search::{Progress, Report, Search, Verdict};
pub use state::{MOST_RANKS, Rank, State};
pub use words::Word;
