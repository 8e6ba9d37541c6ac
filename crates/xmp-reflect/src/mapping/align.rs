//! Alignment of arrays with templates.

use super::{
    Bounds, Dimension, Mapping, MappingError, Shadow, Template, nodes::check_dims, spread::Spread,
    template::check_bounds,
};
use core::ops::Range;

/// The alignment of one dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Align {
    /// Not aligned (`*`): nodes that have any elements have all of this dimension.
    Collapsed,
    /// With a dimension of the template: element `i` is at the node that owns the template's index
    /// `i + offset`.
    With {
        /// The dimension of the template, counted from 0.
        dim: usize,
        /// The number added to an index.
        offset: i64,
    },
}

impl Align {
    /// Returns an alignment with a dimension of the template, index with equal index.
    pub const fn with(dim: usize) -> Align {
        Align::With { dim, offset: 0 }
    }

    /// Returns an alignment with a dimension of the template, index `i` with index `i + offset`.
    pub const fn shifted(dim: usize, offset: i64) -> Align {
        Align::With { dim, offset }
    }
}

impl Template {
    /// Maps an array with these bounds, one alignment for each dimension. Along dimensions of the
    /// template with which none is aligned, the array is replicated: nodes that differ only in
    /// these have the same elements.
    ///
    /// The array has no shadow yet, and its last dimension is the fastest in memory.
    ///
    /// # Errors
    /// [`MappingError::Dimensions`], [`MappingError::Aligns`], [`MappingError::Reversed`],
    /// [`MappingError::TooLong`], [`MappingError::NoSuchTemplateDim`],
    /// [`MappingError::AlignedTwice`], [`MappingError::OutsideTemplate`],
    /// [`MappingError::Offset`], [`MappingError::TooManyCells`].
    pub fn align(&self, bounds: &(impl Bounds + ?Sized), aligns: &[Align]) -> Result<Mapping, MappingError> {
        let bounds = bounds.ranges();
        check_dims("an array", bounds.len())?;
        if aligns.len() != bounds.len() {
            return Err(MappingError::Aligns { given: aligns.len(), dims: bounds.len() });
        }
        for (second, align) in aligns.iter().enumerate() {
            let Align::With { dim: with, .. } = *align else { continue };
            if with >= self.dims().len() {
                return Err(MappingError::NoSuchTemplateDim { dim: second, with, dims: self.dims().len() });
            }
            let names = |align: &Align| matches!(align, Align::With { dim, .. } if *dim == with);
            if let Some(first) = aligns[..second].iter().position(names) {
                return Err(MappingError::AlignedTwice { with, first, second });
            }
        }
        let dimensions = bounds.iter().zip(aligns).enumerate();
        let dimensions = dimensions.map(|(dim, (bounds, align))| self.dimension(dim, bounds, *align));
        Mapping::new(self.nodes().clone(), dimensions.collect::<Result<_, _>>()?)
    }

    /// Returns one dimension of an array.
    fn dimension(&self, dim: usize, bounds: &Range<i64>, align: Align) -> Result<Dimension, MappingError> {
        let extent = check_bounds("array", dim, bounds)?;
        let (bounds, whole) = (bounds.clone(), Spread::Whole);
        let Align::With { dim: with, offset } = align else {
            return Ok(Dimension { bounds, along: None, nodes: 1, spread: whole, shadow: Shadow::NONE });
        };
        let template = &self.dims()[with];
        let along = template.along;
        let nodes = along.map_or(1, |along| self.nodes().extents()[along]);
        if extent == 0 {
            return Ok(Dimension { bounds, along, nodes, spread: whole, shadow: Shadow::NONE });
        }
        let shifted = |index: i64| i128::from(index).saturating_add(offset.into());
        let (first, end) = (i128::from(template.bounds.start), i128::from(template.bounds.end));
        if shifted(bounds.start) < first || shifted(bounds.end) > end {
            let template = template.bounds.clone();
            return Err(MappingError::OutsideTemplate { dim, bounds, offset, with, template });
        }
        match template.spread.shifted(&bounds, offset, nodes) {
            Some(spread) => Ok(Dimension { bounds, along, nodes, spread, shadow: Shadow::NONE }),
            None => Err(MappingError::Offset { dim, offset }),
        }
    }
}
