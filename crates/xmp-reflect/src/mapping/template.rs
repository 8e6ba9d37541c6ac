//! Templates and their distribution.

use super::{Bounds, MappingError, Nodes, nodes::check_dims, spread::Spread};
use core::ops::Range;

/// The distribution of a dimension of a template over a dimension of a node set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Not distributed (`*`): uses no dimension of the node set.
    None,
    /// Blocks of equal length, the shortest that suffice (`block`). The last block that isn't empty
    /// may be shorter, and nodes after it have none.
    Block,
    /// Blocks of this many indices (`block(n)`), as many as necessary.
    BlockOf(usize),
    /// Single indices in turn (`cyclic`).
    Cyclic,
    /// Chunks of this many indices, assigned in turn (`cyclic(n)`).
    CyclicOf(usize),
    /// Blocks of these lengths, one for each node, possibly 0 (`gblock(m)`).
    Gblock(Vec<usize>),
}

/// An index space that is distributed over nodes, for arrays to be [aligned](Template::align) with
/// (`template`, `distribute`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    nodes: Nodes,
    dims: Box<[TemplateDim]>,
}

/// One dimension of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TemplateDim {
    /// In order, and with no more indices than `isize` counts.
    pub(super) bounds: Range<i64>,
    /// The dimension of the node set over which it is distributed.
    pub(super) along: Option<usize>,
    /// The distribution of the template's indices; `Whole` if it is not distributed, or there are
    /// none.
    pub(super) spread: Spread,
}

impl Template {
    /// Creates a template with these bounds, distributed in these formats: dimensions of the node
    /// set correspond, in order, to the dimensions of the template that are distributed.
    ///
    /// # Errors
    /// [`MappingError::Dimensions`], [`MappingError::Reversed`], [`MappingError::TooLong`];
    /// [`MappingError::Formats`] and [`MappingError::NodeDimensions`] for wrong numbers of formats;
    /// [`MappingError::EmptyBlocks`], [`MappingError::TooFewBlocks`],
    /// [`MappingError::GblockLength`], [`MappingError::GblockSum`].
    pub fn new(bounds: &(impl Bounds + ?Sized), formats: &[Format], nodes: &Nodes) -> Result<Template, MappingError> {
        let bounds = bounds.ranges();
        check_dims("a template", bounds.len())?;
        if formats.len() != bounds.len() {
            return Err(MappingError::Formats { given: formats.len(), dims: bounds.len() });
        }
        let distributed = formats.iter().filter(|format| **format != Format::None).count();
        if distributed != nodes.dims() {
            return Err(MappingError::NodeDimensions { distributed, dims: nodes.dims() });
        }
        let mut next = 0..;
        let dims = bounds.iter().zip(formats).enumerate().map(|(dim, (bounds, format))| {
            let extent = check_bounds("template", dim, bounds)?;
            let along = if *format == Format::None { None } else { next.next() };
            let many = along.map_or(1, |along| nodes.extents()[along]);
            format.check(dim, extent, many)?;
            Ok(TemplateDim { bounds: bounds.clone(), along, spread: format.spread(bounds, extent, many) })
        });
        Ok(Template { dims: dims.collect::<Result<_, _>>()?, nodes: nodes.clone() })
    }

    /// Returns the node set.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the bounds of each dimension.
    pub fn bounds(&self) -> Vec<Range<i64>> {
        self.dims.iter().map(|dim| dim.bounds.clone()).collect()
    }

    /// Returns the runs of indices that a node owns along each dimension.
    pub(crate) fn runs(&self, node: usize) -> Result<Vec<Vec<Range<i64>>>, MappingError> {
        let coordinates = self.nodes.coordinates(node)?;
        let of = |dim: &TemplateDim| {
            let (at, nodes) = match dim.along {
                Some(along) => (coordinates[along], self.nodes.extents()[along]),
                None => (0, 1),
            };
            dim.spread.runs(at, nodes, &dim.bounds)
        };
        Ok(self.dims.iter().map(of).collect())
    }

    pub(super) fn dims(&self) -> &[TemplateDim] {
        &self.dims
    }
}

impl Format {
    /// Checks the format of a dimension of the template with `extent` indices over `nodes` nodes.
    fn check(&self, dim: usize, extent: usize, nodes: usize) -> Result<(), MappingError> {
        match self {
            Format::None | Format::Block | Format::Cyclic => Ok(()),
            Format::BlockOf(0) | Format::CyclicOf(0) => Err(MappingError::EmptyBlocks { dim }),
            Format::BlockOf(block) if (*block as u128).saturating_mul(nodes as u128) < extent as u128 => {
                Err(MappingError::TooFewBlocks { dim, block: *block, nodes, extent })
            }
            Format::BlockOf(_) | Format::CyclicOf(_) => Ok(()),
            Format::Gblock(blocks) if blocks.len() != nodes => {
                Err(MappingError::GblockLength { dim, given: blocks.len(), nodes })
            }
            Format::Gblock(blocks) => {
                let sum = blocks.iter().map(|block| *block as u128).sum();
                if sum == extent as u128 { Ok(()) } else { Err(MappingError::GblockSum { dim, sum, extent }) }
            }
        }
    }

    /// Returns the distribution of a dimension's indices.
    fn spread(&self, bounds: &Range<i64>, extent: usize, nodes: usize) -> Spread {
        if extent == 0 {
            return Spread::Whole;
        }
        match self {
            Format::None => Spread::Whole,
            Format::Block => Spread::dealt(bounds, extent.div_ceil(nodes), nodes),
            Format::Cyclic => Spread::dealt(bounds, 1, nodes),
            Format::BlockOf(chunk) | Format::CyclicOf(chunk) => Spread::dealt(bounds, *chunk, nodes),
            Format::Gblock(blocks) => {
                // The sum of all blocks is the extent, so no end is beyond the upper bound.
                let ends = blocks.iter().scan(bounds.start, |end, block| {
                    *end = end.saturating_add_unsigned(*block as u64);
                    Some(*end)
                });
                Spread::Listed([bounds.start].into_iter().chain(ends).collect())
            }
        }
    }
}

/// Checks the bounds of a dimension, and returns its number of indices.
pub(super) fn check_bounds(of: &'static str, dim: usize, bounds: &Range<i64>) -> Result<usize, MappingError> {
    if bounds.start > bounds.end {
        return Err(MappingError::Reversed { of, dim, bounds: bounds.clone() });
    }
    let extent = bounds.end.checked_sub(bounds.start).and_then(|extent| isize::try_from(extent).ok());
    match extent {
        Some(extent) => Ok(extent as usize),
        None => Err(MappingError::TooLong { of, dim, bounds: bounds.clone() }),
    }
}
