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
    /// The job could not start, and it was told why.
    Refused,
    /// It did not come before the job could not start or was aborted.
    NeverCame,
}

/// Who aborted a job, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The rank that did it; none if it was the coordinator.
    pub rank: Option<u32>,
    /// The code that it gave.
    pub code: i32,
    /// The reason that it gave.
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
    /// Tells whether all ranks left.
    pub fn is_good(&self) -> bool {
        self.ends.iter().all(|end| *end == End::Left)
    }
}
