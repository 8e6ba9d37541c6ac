//! The errors of plans.

use crate::mapping::MappingError;
use core::fmt;

/// A side of a shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Below the node's own cells.
    Lower,
    /// Above them.
    Upper,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Lower => "lower",
            Side::Upper => "upper",
        })
    }
}

/// Widths that do not fit the array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no such node.
    #[error("{0}")]
    Mapping(#[from] MappingError),
    /// The number of widths differs from the array's number of dimensions.
    #[error("{given} widths for an array of {dims} dimensions")]
    Widths {
        /// Widths given.
        given: usize,
        /// Dimensions of the array.
        dims: usize,
    },
    /// A width is larger than the shadow.
    #[error("dimension {dim}: a width of {width} for the {side} shadow, which has {shadow} layers")]
    AboveShadow {
        /// The dimension.
        dim: usize,
        /// The side of the shadow.
        side: Side,
        /// Layers to be updated.
        width: usize,
        /// The number of layers of the shadow.
        shadow: usize,
    },
    /// A full shadow is updated as a whole or not at all.
    #[error("dimension {dim} has a full shadow: widths of {lo}:{hi} are neither none nor all of it")]
    PartOfFull {
        /// The dimension.
        dim: usize,
        /// The lower width given.
        lo: usize,
        /// The upper width given.
        hi: usize,
    },
}
