//! The extent of the update of a reflect.

use super::{PlanError, Side};
use crate::mapping::{Mapping, Shadow};

/// A width that means all layers of a shadow.
pub const ALL: usize = usize::MAX;

/// The part of the shadow of one dimension that is updated (`width(/periodic/ lo:hi)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Widths {
    /// The number of layers of the lower shadow, counted from the node's own cells; or [`ALL`].
    pub lo: usize,
    /// Layers of the upper shadow; [`ALL`] of them.
    pub hi: usize,
    /// Whether the array continues at its opposite end beyond its bounds.
    pub periodic: bool,
}

impl Widths {
    /// No part of this dimension's shadow.
    pub const NONE: Widths = Widths::of(0);

    /// The whole shadow, not periodic: the default of a reflect without a width clause.
    pub const WHOLE: Widths = Widths::of(ALL);

    /// Returns as many layers of the lower shadow as of the upper one.
    pub const fn of(layers: usize) -> Widths {
        Widths { lo: layers, hi: layers, periodic: false }
    }

    /// Returns these layers, with the array continuing beyond its bounds.
    pub const fn periodic(self) -> Widths {
        Widths { periodic: true, ..self }
    }
}

/// The cells of a shadow that are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Corners {
    /// Including corners and edges, for stencils with diagonal neighbours.
    #[default]
    With,
    /// Only cells that are in the shadow in one dimension, and the node's own in all others
    /// (`orthogonal`).
    Orthogonal,
    /// Including corners and edges; and in dimensions whose widths are 0, the existing shadows are
    /// carried along, with whatever values they have at the source. So a sequence of reflects of
    /// one dimension each fills corners like one reflect of all dimensions, with two messages for
    /// each dimension. Values that the program keeps in shadows at the array's bounds may be
    /// overwritten with a neighbour's values there.
    Carried,
}

/// Widths of one dimension, resolved for the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// Nothing.
    Nothing,
    /// These numbers of layers, at least one, and at most those of the shadow.
    Layers { lo: usize, hi: usize, periodic: bool },
    /// All cells of a full shadow that the node does not own.
    Full,
}

/// Checks widths against the shadows of an array.
pub(super) fn resolve(mapping: &Mapping, widths: &[Widths]) -> Result<Vec<Update>, PlanError> {
    if widths.len() != mapping.dims() {
        return Err(PlanError::Widths { given: widths.len(), dims: mapping.dims() });
    }
    let within = |dim, side, width: usize, shadow| match width {
        ALL => Ok(shadow),
        width if width > shadow => Err(PlanError::AboveShadow { dim, side, width, shadow }),
        width => Ok(width),
    };
    let update = |(dim, widths): (usize, &Widths)| {
        match (mapping.declared_shadow(dim), *widths) {
            (_, Widths { lo: 0, hi: 0, .. }) => Ok(Update::Nothing),
            (Shadow::Full, Widths { lo: ALL, hi: ALL, .. }) => Ok(Update::Full),
            (Shadow::Full, Widths { lo, hi, .. }) => Err(PlanError::PartOfFull { dim, lo, hi }),
            (Shadow::Width { lo, hi }, widths) => {
                let (lo, hi) = (within(dim, Side::Lower, widths.lo, lo)?, within(dim, Side::Upper, widths.hi, hi)?);
                // A dimension in several pieces has no layers.
                Ok(if (lo, hi) == (0, 0) {
                    Update::Nothing
                } else {
                    Update::Layers { lo, hi, periodic: widths.periodic }
                })
            }
        }
    };
    widths.iter().enumerate().map(update).collect()
}
