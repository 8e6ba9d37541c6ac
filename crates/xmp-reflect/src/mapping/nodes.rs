//! Node sets.

use super::MappingError;
use core::ops::Range;

/// The largest number of dimensions of a node set, a template and an array.
pub const MOST_DIMS: usize = 7;

/// The fastest dimension: in the numbering of nodes, or in an array's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// The first, as in Fortran (column-major).
    FirstFastest,
    /// The last, as in C (row-major).
    LastFastest,
}

impl Order {
    /// Returns the distance between neighbours along each dimension, in elements, if memory of
    /// these extents has no gaps; `None` if there are more elements than can be addressed.
    pub fn strides(self, extents: &[usize]) -> Option<Vec<usize>> {
        let mut strides = vec![0; extents.len()];
        let mut next = |dim: usize, stride: usize| {
            strides[dim] = stride;
            // With an extent of 0 there are no elements: no stride is ever used.
            stride.checked_mul(extents[dim].max(1)).filter(|elements| isize::try_from(*elements).is_ok())
        };
        let dims = 0..extents.len();
        match self {
            Order::FirstFastest => dims.into_iter().try_fold(1, |stride, dim| next(dim, stride))?,
            Order::LastFastest => dims.rev().try_fold(1, |stride, dim| next(dim, stride))?,
        };
        Some(strides)
    }
}

/// The shape of a node set, whose nodes are numbered from 0 (`nodes p(n1, ..., nk)`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    /// 1 to [`MOST_DIMS`] extents, none of them 0; their product fits.
    extents: Box<[usize]>,
    /// The difference between the numbers of neighbours along each dimension.
    strides: Box<[usize]>,
    order: Order,
}

impl Nodes {
    /// Creates a node set of these extents, numbered in this order: `p(2, 3)` in Fortran is `[2,
    /// 3]` with the first dimension fastest, `p[2][3]` in C is `[2, 3]` with the last one fastest.
    ///
    /// # Errors
    /// [`MappingError::Dimensions`], [`MappingError::NoNodes`], [`MappingError::TooManyNodes`].
    pub fn new(extents: &[usize], order: Order) -> Result<Nodes, MappingError> {
        check_dims("a node set", extents.len())?;
        if let Some(dim) = extents.iter().position(|extent| *extent == 0) {
            return Err(MappingError::NoNodes { dim });
        }
        match order.strides(extents) {
            Some(strides) => Ok(Nodes { extents: extents.into(), strides: strides.into(), order }),
            None => Err(MappingError::TooManyNodes { extents: extents.into() }),
        }
    }

    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.extents.len()
    }

    /// Returns the number of nodes along each dimension.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the order in which nodes are numbered.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the coordinates of a node, each counted from 0.
    ///
    /// # Errors
    /// [`MappingError::NoSuchNode`].
    pub fn coordinates(&self, node: usize) -> Result<Vec<usize>, MappingError> {
        if node >= self.size() {
            return Err(MappingError::NoSuchNode { node, size: self.size() });
        }
        // Neither strides nor extents are 0.
        let along = |(stride, extent): (&usize, &usize)| node.checked_div(*stride)?.checked_rem(*extent);
        Ok(self.strides.iter().zip(&self.extents).map(|dim| along(dim).unwrap_or(0)).collect())
    }

    /// Returns whether the coordinates of a node are in these ranges, one for each dimension (a
    /// *nodes-ref*, such as `p(1:2, *)`).
    ///
    /// # Errors
    /// [`MappingError::NodeRanges`] for another number of ranges, or a range beyond the extent;
    /// [`MappingError::NoSuchNode`].
    pub(crate) fn is_within(&self, node: usize, ranges: &[Range<usize>]) -> Result<bool, MappingError> {
        let inside = ranges.iter().zip(&self.extents).all(|(range, extent)| range.end <= *extent);
        if !inside || ranges.len() != self.dims() {
            return Err(MappingError::NodeRanges { ranges: ranges.to_vec(), extents: self.extents.to_vec() });
        }
        Ok(self.coordinates(node)?.iter().zip(ranges).all(|(at, range)| range.contains(at)))
    }

    /// Returns the number of the node at these coordinates.
    ///
    /// # Errors
    /// [`MappingError::NoSuchCoordinates`].
    pub fn number(&self, coordinates: &[usize]) -> Result<usize, MappingError> {
        let inside = coordinates.iter().zip(&self.extents).all(|(at, extent)| at < extent);
        if inside && coordinates.len() == self.dims() {
            Ok(self.number_inside(coordinates))
        } else {
            let (coordinates, extents) = (coordinates.into(), self.extents.to_vec());
            Err(MappingError::NoSuchCoordinates { coordinates, extents })
        }
    }

    /// Returns the number of the node at these coordinates, which must exist.
    #[expect(clippy::arithmetic_side_effects, reason = "no partial sum is above the result, which is a node's number")]
    pub(crate) fn number_inside(&self, coordinates: &[usize]) -> usize {
        coordinates.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }
}

/// Checks a number of dimensions.
pub(super) fn check_dims(of: &'static str, given: usize) -> Result<(), MappingError> {
    if (1..=MOST_DIMS).contains(&given) { Ok(()) } else { Err(MappingError::Dimensions { of, given }) }
}
