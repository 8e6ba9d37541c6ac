//! How ranks and jobs end.

use crate::Refusal;

/// How a rank ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It left.
    Left,
    /// It is lost, for this reason.
    Lost(String),
    /// The job was aborted while it ran.
    Aborted,
    /// The job could not start, and the rank has received the reason.
    Refused,
    /// It had not joined when the job was refused or aborted.
    NeverCame,
}

/// The origin of an abort, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The rank that aborted the job; `None` if it was the coordinator.
    pub rank: Option<u32>,
    /// The exit code of the abort.
    pub code: i32,
    /// The reason for the abort.
    pub text: String,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How each rank ended.
    pub ends: Vec<End>,
    /// The abort, if there was one.
    pub abort: Option<Abort>,
    /// Why the job could not start, if it could not.
    pub refusal: Option<Refusal>,
}

impl Outcome {
    /// Returns whether all ranks left.
    pub fn is_good(&self) -> bool {
        self.ends.iter().all(|end| *end == End::Left)
    }
}
