//! The subject of a search: a lock, the roles of its ranks, and a step that may be mutated.

use crate::{
    mutant::Mutant,
    state::{Cell, Goal, MOST_RANKS, Pc, Rank, Slot, State},
    walk::{Tables, Walk},
};
use std::fmt;

/// A lock that has a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// `RpLock`.
    Flat,
    /// `PackedLock`.
    Packed,
    /// `BargingLock` if operations take time: a releasing writer hands the lock to the head.
    Barging,
    /// `BargingLock` if operations complete as they are posted: a releasing writer wakes the head,
    /// which then checks the lock itself.
    Passing,
    /// `WritersFirstLock`.
    WritersFirst,
    /// `FairLock`.
    Fair,
    /// `Aggregated<RpLock>`, with one level of nodes.
    Aggregated,
}

impl Lock {
    /// All locks.
    pub const ALL: [Lock; 7] =
        [Lock::Flat, Lock::Packed, Lock::Barging, Lock::Passing, Lock::WritersFirst, Lock::Fair, Lock::Aggregated];

    /// Returns the name of the lock's type.
    pub fn name(self) -> &'static str {
        match self {
            Lock::Flat => "RpLock",
            Lock::Packed => "PackedLock",
            Lock::Barging | Lock::Passing => "BargingLock",
            Lock::WritersFirst => "WritersFirstLock",
            Lock::Fair => "FairLock",
            Lock::Aggregated => "Aggregated<RpLock>",
        }
    }
}

/// The role of a rank: it acquires the lock, reads or changes the data, and releases the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Takes the lock shared.
    Read,
    /// Takes the lock exclusively.
    Write,
}

/// A violation that a run of a model may show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A writer is inside at the same time as another rank.
    Exclusion,
    /// A rank inside sees a version of the data that is older than the last one.
    Missed {
        /// The version that the rank sees.
        version: u64,
        /// The number of writes to the data.
        writes: u64,
    },
    /// A word holds a value that the lock reports as corrupt.
    Corrupt {
        /// The word.
        what: &'static str,
        /// Its value.
        bits: u64,
    },
    /// No move is left, and this rank has not ended.
    Deadlock {
        /// The first such rank.
        rank: usize,
    },
    /// All ranks have ended, and a word does not have its idle value.
    Residue {
        /// The word.
        word: &'static str,
        /// Its value.
        bits: u64,
    },
    /// The capacity of the model is exceeded: by a third node of a rank, or by a second put of a
    /// rank to the same word.
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

/// A lock, the roles of its ranks, and the mutated step, if any.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) lock: Lock,
    pub(crate) roles: Vec<Role>,
    /// The node of each rank; only [`Lock::Aggregated`] uses it.
    pub(crate) nodes: Vec<u8>,
    pub(crate) rounds: u8,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) tables: Tables,
}

impl Model {
    /// Creates a model in which each rank plays its role `rounds` times. All ranks are on one node
    /// unless [set](Model::nodes) otherwise.
    ///
    /// # Panics
    /// If there are no ranks or more than five, or if `rounds` is neither 1 nor 2.
    pub fn new(lock: Lock, roles: &[Role], rounds: usize) -> Model {
        assert!((1..=MOST_RANKS).contains(&roles.len()), "{} ranks; 1 to {MOST_RANKS} have room", roles.len());
        assert!((1..=2).contains(&rounds), "{rounds} rounds; 1 or 2 have room: a rank has two nodes here");
        let tables = Tables::of(lock, roles.len());
        Model { lock, roles: roles.to_vec(), nodes: vec![0; roles.len()], rounds: rounds as u8, mutant: None, tables }
    }

    /// Sets the node of each rank, 0 or 1.
    ///
    /// # Panics
    /// If the number of nodes differs from the number of ranks, or a node is neither 0 nor 1.
    #[must_use]
    pub fn nodes(mut self, nodes: &[u8]) -> Model {
        assert!(
            nodes.len() == self.roles.len() && nodes.iter().all(|node| *node < 2),
            "a node for each rank: {nodes:?}"
        );
        self.nodes = nodes.to_vec();
        self
    }

    /// Returns the model with one mutated step.
    #[must_use]
    pub fn mutated(mut self, mutant: Mutant) -> Model {
        self.mutant = Some(mutant);
        self
    }

    /// Sets the number of times that a writer checks whether the lock has become free before it
    /// queues up, if writers may barge.
    #[must_use]
    pub fn looking(mut self, looks: u8) -> Model {
        if let Tables::Counted(table) = &mut self.tables {
            table.looks = looks;
        }
        self
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.roles.len()
    }

    /// Returns whether writers barge.
    pub(crate) fn barges(&self) -> bool {
        matches!(self.lock, Lock::Barging | Lock::Passing)
    }

    /// Returns whether `me` uses the words of its node.
    pub(crate) fn has_level(&self, me: usize) -> bool {
        self.lock == Lock::Aggregated && self.nodes.iter().filter(|node| **node == self.nodes[me]).count() > 1
    }

    /// Returns whether the second cell of `rank` belongs to its level.
    pub(crate) fn second_is_levels(&self, rank: usize) -> bool {
        self.lock == Lock::Aggregated && self.roles[rank] == Role::Read
    }

    pub(crate) fn does(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Returns the initial state.
    pub fn start(&self) -> State {
        let rank = Rank {
            cells: [Cell::default(); 2],
            slots: [Slot::Clean; 2],
            turns: [0; 2],
            pc: Pc::End,
            goal: Goal::Walk,
            walk: Walk::None,
            cell: 0,
            rounds: 0,
            woken: false,
            late: false,
            link: 0,
            other: 0,
            word: 0,
            left: 0,
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
