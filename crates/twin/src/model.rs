//! What is searched: a lock, what its ranks do with it, and what may be done wrong.

use crate::{
    counted::Then,
    mistake::Mistake,
    state::{Cell, Goal, MOST_RANKS, Pc, Rank, Slot, State},
};
use std::fmt;

/// A lock of which there is a model. The models depend on no lock's crate, so its list of locks is
/// not used; names are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// `RpLock`.
    Flat,
    /// `PackedLock`.
    Packed,
    /// `WritersFirstLock`.
    WritersFirst,
    /// `FairLock`.
    Fair,
    /// `Aggregated<RpLock>`, with one level of nodes.
    Aggregated,
}

impl Lock {
    /// All of them.
    pub const ALL: [Lock; 5] = [Lock::Flat, Lock::Packed, Lock::WritersFirst, Lock::Fair, Lock::Aggregated];

    /// Returns the name of the lock's type.
    pub fn name(self) -> &'static str {
        match self {
            Lock::Flat => "RpLock",
            Lock::Packed => "PackedLock",
            Lock::WritersFirst => "WritersFirstLock",
            Lock::Fair => "FairLock",
            Lock::Aggregated => "Aggregated<RpLock>",
        }
    }
}

/// What a rank does: takes the lock, looks at the data or changes it, lets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Shared.
    Read,
    /// Exclusively.
    Write,
}

/// What breaks a run of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A writer is inside, and somebody else.
    Exclusion,
    /// Somebody inside sees an older version than the last one.
    Missed {
        /// What it sees.
        version: u64,
        /// How often the data was written.
        writes: u64,
    },
    /// A word holds what the lock calls corrupt.
    Corrupt {
        /// Which.
        what: &'static str,
        /// What it holds.
        bits: u64,
    },
    /// Nothing can happen any more, and this rank has not ended.
    Deadlock {
        /// The first such rank.
        rank: usize,
    },
    /// All have ended, and a word is not at rest.
    Residue {
        /// Which.
        word: &'static str,
        /// What it holds.
        bits: u64,
    },
    /// The model has no more room: a third node of a rank, or a second put of a rank to the same
    /// word.
    NoRoom(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Exclusion => write!(f, "exclusion: a writer is not alone inside"),
            Violation::Missed { version, writes } => {
                write!(f, "visibility: version {version} is seen after {writes} writes")
            }
            Violation::Corrupt { what, bits } => write!(f, "error: {what} holds {bits:#x}"),
            Violation::Deadlock { rank } => write!(f, "deadlock: rank {rank} waits for ever"),
            Violation::Residue { word, bits } => write!(f, "residue: {word} holds {bits:#x} at the end"),
            Violation::NoRoom(what) => write!(f, "the model has no room for {what}"),
        }
    }
}

/// A lock, what its ranks do with it, and the step that is done wrong, if one is.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) lock: Lock,
    pub(crate) roles: Vec<Role>,
    /// The node of each rank; of interest to [`Lock::Aggregated`].
    pub(crate) nodes: Vec<u8>,
    pub(crate) rounds: u8,
    pub(crate) mistake: Option<Mistake>,
}

impl Model {
    /// Each rank does its part so many times. All ranks are on one node unless
    /// [said](Model::nodes).
    ///
    /// # Panics
    /// If there are more than five ranks, or other than one or two rounds.
    pub fn new(lock: Lock, roles: &[Role], rounds: usize) -> Model {
        assert!((1..=MOST_RANKS).contains(&roles.len()), "{} ranks; 1 to {MOST_RANKS} have room", roles.len());
        assert!((1..=2).contains(&rounds), "{rounds} rounds; 1 or 2 have room: a rank has two nodes here");
        Model { lock, roles: roles.to_vec(), nodes: vec![0; roles.len()], rounds: rounds as u8, mistake: None }
    }

    /// The node of each rank, 0 or 1.
    ///
    /// # Panics
    /// If these are not as many as ranks, or others.
    #[must_use]
    pub fn nodes(mut self, nodes: &[u8]) -> Model {
        assert!(
            nodes.len() == self.roles.len() && nodes.iter().all(|node| *node < 2),
            "a node for each rank: {nodes:?}"
        );
        self.nodes = nodes.to_vec();
        self
    }

    /// With one step done wrong.
    #[must_use]
    pub fn mistaken(mut self, mistake: Mistake) -> Model {
        self.mistake = Some(mistake);
        self
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.roles.len()
    }

    /// Whether `me` goes through the words of its node.
    pub(crate) fn has_level(&self, me: usize) -> bool {
        self.lock == Lock::Aggregated && self.nodes.iter().filter(|node| **node == self.nodes[me]).count() > 1
    }

    /// Whether the second cell of `rank` is its level's.
    pub(crate) fn second_is_levels(&self, rank: usize) -> bool {
        self.lock == Lock::Aggregated && self.roles[rank] == Role::Read
    }

    pub(crate) fn does(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The beginning.
    pub fn start(&self) -> State {
        let rank = Rank {
            cells: [Cell::default(); 2],
            slots: [Slot::Fresh; 2],
            turns: [0; 2],
            pc: Pc::End,
            goal: Goal::R3,
            ctx: Then::End,
            cell: 0,
            rounds: 0,
            woken: false,
            late: false,
            link: 0,
            other: 0,
            word: 0,
            head_put: 0,
            data_put: 0,
        };
        let mut state = State { home: [0; 4], level: [[0; 2]; 2], data: 0, writes: 0, ranks: [rank; MOST_RANKS] };
        for me in 0..self.ranks() {
            state.ranks[me].rounds = self.rounds;
            self.turn(&mut state, me).begin_round();
        }
        state
    }
}
