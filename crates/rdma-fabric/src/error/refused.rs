//! What came of an operation that was not posted.

use super::FabricError;

/// A posting that did not happen. Nothing is lost: the operation comes back.
#[derive(Debug)]
pub enum Refused<Op> {
    /// The queue, or the target's notice queue, has no room now. Post again later.
    Full(Op),
    /// The operation is not possible.
    Failed(FabricError, Op),
}

impl<Op> Refused<Op> {
    /// The operation that was refused.
    pub fn into_inner(self) -> Op {
        match self {
            Refused::Full(op) | Refused::Failed(_, op) => op,
        }
    }

    /// The same refusal about another form of the operation.
    #[inline(always)]
    pub fn map<New>(self, f: impl FnOnce(Op) -> New) -> Refused<New> {
        match self {
            Refused::Full(op) => Refused::Full(f(op)),
            Refused::Failed(error, op) => Refused::Failed(error, f(op)),
        }
    }
}
