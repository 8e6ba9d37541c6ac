//! The parameters of a grid.

use crate::{BlacsError, Result};

/// The parameters 11 to 16 of `blacs_get` and `blacs_set`. All processes of a grid set the same
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// The number of paths of a [multi-ring](crate::Topology::MultiRing) broadcast (11); towards lower
    /// numbers if it is negative. Not 0.
    pub broadcast_rings: i32,
    /// The number of branches of a [general tree](crate::Topology::GeneralTree) in broadcasts (12).
    /// Not 0.
    pub broadcast_branches: usize,
    /// As `broadcast_rings`, for combines (13).
    pub combine_rings: i32,
    /// As `broadcast_branches`, for combines (14).
    pub combine_branches: usize,
    /// Whether combines must be bitwise repeatable (15). They always are.
    pub repeatable: bool,
    /// Whether all receivers of the result of a combine must have the same bits (16). If so,
    /// [`Topology::Hypercube`](crate::Topology::Hypercube) uses a tree as well. If the arithmetic
    /// of all ranks is identical, an exchange yields the same bits as well, because operands are
    /// always taken in the order of their numbers.
    pub coherent: bool,
}

impl Default for Parameters {
    /// One ring, one branch, neither repeatable nor coherent.
    fn default() -> Self {
        Parameters {
            broadcast_rings: 1,
            broadcast_branches: 1,
            combine_rings: 1,
            combine_branches: 1,
            repeatable: false,
            coherent: false,
        }
    }
}

impl Parameters {
    pub(crate) fn checked(self) -> Result<Self> {
        for (parameter, value) in [("broadcast_rings", self.broadcast_rings), ("combine_rings", self.combine_rings)] {
            if value == 0 {
                return Err(BlacsError::BadParameter { parameter, allowed: "other than 0", value: 0 });
            }
        }
        for (parameter, value) in
            [("broadcast_branches", self.broadcast_branches), ("combine_branches", self.combine_branches)]
        {
            if value == 0 {
                return Err(BlacsError::BadParameter { parameter, allowed: "greater than 0", value: 0 });
            }
        }
        Ok(self)
    }
}
