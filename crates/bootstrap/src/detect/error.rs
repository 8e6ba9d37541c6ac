//! What may be wrong with the variables of launchers.

use super::BadNodeList;

/// The environment does not tell which rank of which job this process is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// A variable has a value that it can't have.
    #[error("the variable {variable} is `{value}`, not {expected}")]
    Malformed {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Some of a launcher's variables are there, but not all.
    #[error("the variable {missing} is not set, though {present} is")]
    HalfSet {
        /// The one that is missing.
        missing: &'static str,
        /// One that is there.
        present: &'static str,
    },
    /// A rank is not below the number of ranks.
    #[error("the variable {variable} says rank {rank}, but {of} says that there are {ranks}")]
    RankOutOfRange {
        /// The variable with the rank.
        variable: &'static str,
        /// The rank.
        rank: u32,
        /// The variable with the number of ranks.
        of: &'static str,
        /// The number of ranks.
        ranks: usize,
    },
    /// Two launchers tell different things.
    #[error("{one} and {other} disagree about the {what}: {first} and {second}")]
    Disagreement {
        /// What they disagree about.
        what: &'static str,
        /// A launcher.
        one: &'static str,
        /// What it says.
        first: u64,
        /// The other launcher.
        other: &'static str,
        /// What that says.
        second: u64,
    },
    /// Slurm's list of nodes is none.
    #[error("the variable {variable}: {cause}")]
    NodeList {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        cause: BadNodeList,
    },
}
