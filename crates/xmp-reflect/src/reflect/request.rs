//! The arguments of a reflect.

use super::Transport;
use crate::{
    mapping::Mapping,
    plan::{Corners, Widths},
};

/// The clauses of a reflect: the shadows, and how they are updated. All nodes must give the same
/// ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reflect {
    /// By dimension; `None` for the whole shadow, not periodic.
    widths: Option<Vec<Widths>>,
    corners: Corners,
    transport: Option<Transport>,
    /// Whether this is a `reduce_shadow`.
    reduces: bool,
}

impl Default for Reflect {
    fn default() -> Self {
        Reflect::whole()
    }
}

impl Reflect {
    /// The whole shadow with its corners, not periodic: a reflect without clauses.
    pub const fn whole() -> Self {
        Reflect { widths: None, corners: Corners::With, transport: None, reduces: false }
    }

    /// These layers of each dimension's shadow (`width`).
    pub fn widths(widths: &[Widths]) -> Self {
        Reflect { widths: Some(widths.to_vec()), ..Reflect::whole() }
    }

    /// Returns this reflect without corners (`orthogonal`).
    #[must_use]
    pub fn orthogonal(self) -> Self {
        self.corners(Corners::Orthogonal)
    }

    /// Returns this reflect with these corners.
    #[must_use]
    pub fn corners(self, corners: Corners) -> Self {
        Reflect { corners, ..self }
    }

    /// Returns this reflect with an explicit transport, instead of that of the
    /// [`NodeSet`](crate::NodeSet).
    #[must_use]
    pub fn by(self, transport: Transport) -> Self {
        Reflect { transport: Some(transport), ..self }
    }

    pub(super) fn reducing(self) -> Self {
        Reflect { reduces: true, ..self }
    }

    /// Returns the widths for the dimensions of an array.
    pub(super) fn widths_of(&self, mapping: &Mapping) -> Vec<Widths> {
        self.widths.clone().unwrap_or_else(|| vec![Widths::WHOLE; mapping.dims()])
    }

    pub(super) fn corners_asked(&self) -> Corners {
        self.corners
    }

    pub(super) fn transport(&self) -> Option<Transport> {
        self.transport
    }

    /// Returns whether two reflects of one array may move the same cells: the same result at all
    /// nodes, independent of the elements that they own.
    pub(super) fn meets(&self, other: &Reflect) -> bool {
        let simple = |reflect: &Reflect| !reflect.reduces && reflect.corners != Corners::Carried;
        let (Some(mine), Some(theirs)) = (&self.widths, &other.widths) else { return true };
        if !simple(self) || !simple(other) || mine.len() != theirs.len() {
            return true;
        }
        // Whether both have a face of one dimension, or a corner of several.
        let both = |mine: &Widths, theirs: &Widths| mine.lo.min(theirs.lo) > 0 || mine.hi.min(theirs.hi) > 0;
        mine.iter().zip(theirs).any(|(mine, theirs)| both(mine, theirs))
    }
}
