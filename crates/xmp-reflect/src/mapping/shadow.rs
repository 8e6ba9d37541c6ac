//! Shadows.

use super::{Mapping, MappingError};

/// The shadow of one dimension of an array: room for copies of elements that the node does not own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shadow {
    /// These numbers of layers below and above the owned block (`shadow a(lo:hi)`), also at the
    /// bounds of the array, where a periodic reflect needs them.
    Width {
        /// Layers below.
        lo: usize,
        /// Layers above.
        hi: usize,
    },
    /// The whole dimension (`shadow a(*)`): all indices that the node does not own are shadow, and
    /// the local index is the distance from the array's lower bound.
    Full,
}

impl Shadow {
    /// No shadow.
    pub const NONE: Shadow = Shadow::of(0);

    /// Returns a shadow of as many layers below as above (`shadow a(n)`).
    pub const fn of(layers: usize) -> Shadow {
        Shadow::Width { lo: layers, hi: layers }
    }
}

impl Mapping {
    /// Sets the array's shadow, one for each dimension, replacing those that it had. An array that
    /// was only aligned has none.
    ///
    /// Layers need a dimension of which each node owns one piece: one that is not distributed, or
    /// is distributed in blocks, or in chunks of which no node has more than one. A full shadow
    /// fits any dimension.
    ///
    /// XcalableMP has no shadow of collapsed dimensions. Here a dimension of which nodes have all
    /// indices can have one: a periodic reflect fills it with the node's own elements.
    ///
    /// A node that owns no index of a dimension has a shadow nevertheless: that of an empty block
    /// between the blocks of its neighbours, or at one of the array's bounds.
    ///
    /// # Errors
    /// [`MappingError::Shadows`], [`MappingError::ShadowOfChunks`],
    /// [`MappingError::TooManyCells`].
    pub fn shadow(mut self, shadows: &[Shadow]) -> Result<Mapping, MappingError> {
        if shadows.len() != self.dims() {
            return Err(MappingError::Shadows { given: shadows.len(), dims: self.dims() });
        }
        for (dim, (of, shadow)) in self.dimensions.iter_mut().zip(shadows).enumerate() {
            match *shadow {
                Shadow::Width { lo, hi } if (lo > 0 || hi > 0) && !of.is_contiguous() => {
                    return Err(MappingError::ShadowOfChunks { dim, lo, hi });
                }
                _ => of.shadow = *shadow,
            }
        }
        self.checked()
    }
}
