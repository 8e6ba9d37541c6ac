//! Explicit-state search: visits every state of a [transition system](System) once.
//!
//! [`Search`] follows all moves depth first and counts states. After a violation, [`shortest`]
//! searches again, breadth first, for a shortest path to one.
//! The [`Explorer`](crate::Explorer) is one such system; a hand-written model is another:
//!
//! ```
//! use explore::space::{End, HaltOf, Search, System, shortest};
//! use std::convert::Infallible;
//!
//! /// A jug of 3 litres and one of 5, to be filled and emptied until one holds 4 litres.
//! struct Jugs;
//!
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! enum Move {
//!     Fill(usize),
//!     Empty(usize),
//!     PourFrom(usize),
//! }
//!
//! impl System for Jugs {
//!     type State = [u8; 2];
//!     type Move = Move;
//!     type Violation = &'static str;
//!     type Abort = Infallible;
//!     type Key = u128;
//!
//!     fn first(&mut self) -> Result<[u8; 2], HaltOf<Self>> {
//!         Ok([0, 0])
//!     }
//!     fn apply(&mut self, litres: &mut [u8; 2], which: Move) -> Result<(), HaltOf<Self>> {
//!         let room = [3 - litres[0], 5 - litres[1]];
//!         match which {
//!             Move::Fill(jug) => litres[jug] += room[jug],
//!             Move::Empty(jug) => litres[jug] = 0,
//!             Move::PourFrom(jug) => {
//!                 let poured = litres[jug].min(room[1 - jug]);
//!                 litres[jug] -= poured;
//!                 litres[1 - jug] += poured;
//!             }
//!         }
//!         Ok(())
//!     }
//!     fn visit(&mut self, litres: &[u8; 2], moves: &mut Vec<Move>) -> Result<bool, HaltOf<Self>> {
//!         if litres.contains(&4) {
//!             return Err(explore::space::Halt::Violation("four litres"));
//!         }
//!         moves.extend([0, 1].into_iter().flat_map(|jug| [Move::Fill(jug), Move::Empty(jug), Move::PourFrom(jug)]));
//!         Ok(false)
//!     }
//!     fn key(&self, litres: &[u8; 2]) -> u128 {
//!         u16::from_le_bytes(*litres).into()
//!     }
//! }
//!
//! let Ok(found) = Search::new().run(&mut Jugs);
//! assert!(matches!(found.end, End::Violated("four litres", _)));
//! let Ok(Some((_, moves))) = shortest(&mut Jugs, 1_000) else { panic!("there is a way") };
//! assert_eq!(moves.len(), 6);
//! ```

mod breadth;
mod depth;
mod key;

pub use breadth::{NEAR, shortest};
pub use depth::Search;
pub use key::{FingerprintHasher, Key, Whole};

/// A transition system: a first state, and moves that lead from state to state.
///
/// Both searches require that it is deterministic: equal states have the same moves in the same
/// order, and a move leads from equal states to equal states.
pub trait System {
    /// A state. A search copies it once for each move; [`Clone::clone_from`] can reuse the
    /// allocations of a state that is no longer needed.
    type State: Clone;
    /// A move from a state to another.
    type Move: Copy;
    /// The fault of a move or a state.
    type Violation;
    /// The reason why a whole search is abandoned; [`Infallible`](std::convert::Infallible) if
    /// there is none.
    type Abort;
    /// The identification of a state: usually a 128-bit fingerprint, `u128`, or else the [`Whole`] state.
    type Key: Key;

    /// Returns the first state.
    fn first(&mut self) -> Result<Self::State, HaltOf<Self>>;

    /// Changes `state` to the one that `which` leads to. If this fails, `state` may be left half
    /// changed.
    fn apply(&mut self, state: &mut Self::State, which: Self::Move) -> Result<(), HaltOf<Self>>;

    /// Checks a state when it is met for the first time, and adds its possible moves to `moves`,
    /// which is empty. Returns whether the state is a proper end.
    fn visit(&mut self, state: &Self::State, moves: &mut Vec<Self::Move>) -> Result<bool, HaltOf<Self>>;

    /// Returns the key of a state. States with equal keys count as one: only the first of them is
    /// visited.
    fn key(&self, state: &Self::State) -> Self::Key;
}

/// The reason why a move was not completed, or a state not left again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt<V, A> {
    /// Something is wrong: the search ends with a counterexample.
    Violation(V),
    /// The branch is not followed any further, but the search continues elsewhere.
    Pruned,
    /// The search is abandoned.
    Abort(A),
}

/// The [`Halt`] of a system.
pub type HaltOf<S> = Halt<<S as System>::Violation, <S as System>::Abort>;

/// Figures of a search, in progress or at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Different states so far.
    pub states: u64,
    /// Transitions so far.
    pub transitions: u64,
    /// Moves on the path that is being followed.
    pub depth: usize,
    /// Moves on the longest path so far.
    pub longest: usize,
    /// Proper ends among the states so far. For the [explorer](crate::Explorer): states in which
    /// all ranks had ended or died.
    pub ends: u64,
    /// Transitions so far that led back to a state on their own path.
    pub circles: u64,
    /// Branches so far that were [not followed](Halt::Pruned).
    pub pruned: u64,
}

/// How a search ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End<V, M> {
    /// All states were visited, except those behind pruned branches only.
    Exhausted,
    /// There are more states than the limit allows.
    Limit,
    /// The callback that watches the progress asked to stop.
    Asked,
    /// A violation, and the moves that led to it.
    Violated(V, Vec<M>),
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<V, M> {
    /// The figures at the end.
    pub progress: Progress,
    /// How it ended.
    pub end: End<V, M>,
}

/// The [`Outcome`] of searching a system.
pub type OutcomeOf<S> = Outcome<<S as System>::Violation, <S as System>::Move>;
