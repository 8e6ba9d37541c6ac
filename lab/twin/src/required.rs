//! The jobs for which the locks must be searched.

use crate::model::{Lock, Model, Role, Role::*};

/// A job: the roles and nodes of the ranks, and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name: R and W are followed by the numbers of readers and writers; the factor is the
    /// number of rounds.
    pub name: &'static str,
    roles: &'static [Role],
    nodes: &'static [u8],
    rounds: usize,
}

const fn case(name: &'static str, roles: &'static [Role], nodes: &'static [u8], rounds: usize) -> Case {
    Case { name, roles, nodes, rounds }
}

impl Case {
    /// The jobs whose states must be explored exhaustively for each lock.
    pub const REQUIRED: [Case; 4] = [
        case("R3W1x1", &[Read, Read, Read, Write], &[0, 0, 1, 1], 1),
        case("R2W2x2", &[Read, Read, Write, Write], &[0, 0, 1, 1], 2),
        case("R1W3x2", &[Read, Write, Write, Write], &[0, 0, 1, 1], 2),
        case("R3W2x1", &[Read, Read, Read, Write, Write], &[0, 0, 1, 1, 1], 1),
    ];

    /// The required jobs, and some that are larger.
    pub const ALL: [Case; 7] = [
        Case::REQUIRED[0],
        Case::REQUIRED[1],
        Case::REQUIRED[2],
        Case::REQUIRED[3],
        case("R4W1x1", &[Read, Read, Read, Read, Write], &[0, 0, 1, 1, 1], 1),
        case("R2W3x1", &[Read, Read, Write, Write, Write], &[0, 0, 1, 1, 1], 1),
        case("R3W1x2", &[Read, Read, Read, Write], &[0, 0, 1, 1], 2),
    ];

    /// Returns the model of this job for a lock.
    pub fn of(&self, lock: Lock) -> Model {
        Model::new(lock, self.roles, self.rounds).nodes(self.nodes)
    }
}
