//! Errors in the variables of launchers.

use super::BadNodeList;

/// The environment does not identify this process's rank and job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// A variable has an invalid value.
    #[error("the variable {variable} is `{value}`, not {expected}")]
    Malformed {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// Some of a launcher's variables are set, but not all.
    #[error("the variable {missing} is not set, though {present} is")]
    HalfSet {
        /// A variable that is not set.
        missing: &'static str,
        /// A variable that is set.
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
    /// Two launchers disagree.
    #[error("{one} and {other} disagree about the {what}: {first} and {second}")]
    Disagreement {
        /// The subject of the disagreement.
        what: &'static str,
        /// One launcher.
        one: &'static str,
        /// The value given by that launcher.
        first: u64,
        /// The other launcher.
        other: &'static str,
        /// The value given by the other launcher.
        second: u64,
    },
    /// Slurm's list of nodes is malformed.
    #[error("the variable {variable}: {cause}")]
    NodeList {
        /// The variable.
        variable: &'static str,
        /// The reason.
        cause: BadNodeList,
    },
}
