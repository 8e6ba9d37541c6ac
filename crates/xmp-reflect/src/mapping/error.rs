//! The errors of mappings.

use core::ops::Range;

/// A node set, template, alignment or shadow that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The number of dimensions is 0 or above [`MOST_DIMS`](super::MOST_DIMS).
    #[error("{of} of {given} dimensions: it must have 1 to {}", super::MOST_DIMS)]
    Dimensions {
        /// The object with these dimensions.
        of: &'static str,
        /// The number of dimensions given.
        given: usize,
    },
    /// A dimension of a node set has no nodes.
    #[error("dimension {dim} of the node set has no nodes")]
    NoNodes {
        /// The dimension.
        dim: usize,
    },
    /// A loop nest has a number of loops other than that of the dimensions it is executed on.
    #[error("{loops} loops on {dims} dimensions")]
    Loops {
        /// Loops given.
        loops: usize,
        /// Dimensions of the template or array.
        dims: usize,
    },
    /// A node set has more nodes than can be numbered.
    #[error("a node set of extents {extents:?} has more nodes than can be numbered")]
    TooManyNodes {
        /// The extents.
        extents: Vec<usize>,
    },
    /// There is no node of this number.
    #[error("there is no node {node} among {size}")]
    NoSuchNode {
        /// The number given.
        node: usize,
        /// The number of nodes.
        size: usize,
    },
    /// There is no node at these coordinates.
    #[error("there is no node at {coordinates:?} in a node set of extents {extents:?}")]
    NoSuchCoordinates {
        /// The coordinates given.
        coordinates: Vec<usize>,
        /// The extents of the node set.
        extents: Vec<usize>,
    },
    /// Ranges of coordinates that do not fit a node set.
    #[error("ranges {ranges:?} are not inside a node set of extents {extents:?}")]
    NodeRanges {
        /// The ranges given.
        ranges: Vec<Range<usize>>,
        /// The extents of the node set.
        extents: Vec<usize>,
    },
    /// The lower bound of a dimension is above its upper bound.
    #[error("dimension {dim} of the {of} has bounds {}..{}, the wrong way round", .bounds.start, .bounds.end)]
    Reversed {
        /// The object with these bounds.
        of: &'static str,
        /// The dimension.
        dim: usize,
        /// The bounds given.
        bounds: Range<i64>,
    },
    /// A dimension has more indices than can be counted.
    #[error("dimension {dim} of the {of} has bounds {}..{}, more than can be counted", .bounds.start, .bounds.end)]
    TooLong {
        /// The object with these bounds.
        of: &'static str,
        /// The dimension.
        dim: usize,
        /// The bounds given.
        bounds: Range<i64>,
    },
    /// The number of formats differs from the template's number of dimensions.
    #[error("{given} formats for a template of {dims} dimensions")]
    Formats {
        /// Formats given.
        given: usize,
        /// Dimensions of the template.
        dims: usize,
    },
    /// The number of distributed dimensions differs from the node set's number of dimensions.
    #[error("{distributed} dimensions of the template are distributed over a node set of {dims}")]
    NodeDimensions {
        /// Dimensions whose format isn't [`Format::None`](super::Format::None).
        distributed: usize,
        /// Dimensions of the node set.
        dims: usize,
    },
    /// Blocks or chunks of no indices.
    #[error("dimension {dim} of the template is distributed in blocks of 0")]
    EmptyBlocks {
        /// The dimension.
        dim: usize,
    },
    /// `block(n)` does not cover the dimension.
    #[error("dimension {dim} of the template: {nodes} blocks of {block} do not cover {extent} indices")]
    TooFewBlocks {
        /// The dimension.
        dim: usize,
        /// Indices of a block.
        block: usize,
        /// The number of nodes, and thus the maximum number of blocks.
        nodes: usize,
        /// Indices of the dimension.
        extent: usize,
    },
    /// The mapping array of `gblock` has a length other than the number of nodes.
    #[error("dimension {dim} of the template: gblock lists {given} blocks for {nodes} nodes")]
    GblockLength {
        /// The dimension.
        dim: usize,
        /// Blocks listed.
        given: usize,
        /// Nodes of the dimension.
        nodes: usize,
    },
    /// The blocks of `gblock` together are not as long as the dimension.
    #[error("dimension {dim} of the template: the blocks of gblock have {sum} indices, the dimension {extent}")]
    GblockSum {
        /// The dimension.
        dim: usize,
        /// Indices of all blocks together.
        sum: u128,
        /// Indices of the dimension.
        extent: usize,
    },
    /// The number of alignments differs from the array's number of dimensions.
    #[error("{given} alignments for an array of {dims} dimensions")]
    Aligns {
        /// Alignments given.
        given: usize,
        /// Dimensions of the array.
        dims: usize,
    },
    /// A dimension is aligned with one that the template doesn't have.
    #[error("dimension {dim} of the array is aligned with dimension {with} of a template of {dims}")]
    NoSuchTemplateDim {
        /// The dimension of the array.
        dim: usize,
        /// The dimension of the template with which it is aligned.
        with: usize,
        /// Dimensions of the template.
        dims: usize,
    },
    /// Two dimensions of an array are aligned with one dimension of the template.
    #[error("dimensions {first} and {second} of the array are both aligned with dimension {with} of the template")]
    AlignedTwice {
        /// The dimension of the template.
        with: usize,
        /// The first dimension of the array that is aligned with it.
        first: usize,
        /// The second one.
        second: usize,
    },
    /// Elements of an array lie outside the template.
    #[error(
        "dimension {dim} of the array, {}..{} shifted by {offset}, reaches beyond dimension {with} of the template, {}..{}",
        .bounds.start, .bounds.end, .template.start, .template.end
    )]
    OutsideTemplate {
        /// The dimension of the array.
        dim: usize,
        /// Its bounds.
        bounds: Range<i64>,
        /// The number added to its indices.
        offset: i64,
        /// The dimension of the template.
        with: usize,
        /// Its bounds.
        template: Range<i64>,
    },
    /// An alignment's offset moves the template's bounds out of the range of indices.
    #[error("dimension {dim} of the array: an offset of {offset} leads out of the range of indices")]
    Offset {
        /// The dimension of the array.
        dim: usize,
        /// The offset.
        offset: i64,
    },
    /// The number of shadows differs from the array's number of dimensions.
    #[error("{given} shadows for an array of {dims} dimensions")]
    Shadows {
        /// Shadows given.
        given: usize,
        /// Dimensions of the array.
        dims: usize,
    },
    /// A shadow around blocks that nodes do not own in one piece.
    #[error("dimension {dim} of the array has a shadow of {lo}:{hi}, but some node owns several chunks of it")]
    ShadowOfChunks {
        /// The dimension.
        dim: usize,
        /// Width of the lower shadow.
        lo: usize,
        /// Width of the upper shadow.
        hi: usize,
    },
    /// The part of one node has more cells than memory can hold.
    #[error("a node's part of the array, of extents {extents:?}, has more cells than can be addressed")]
    TooManyCells {
        /// The largest extents that a node has, shadow included.
        extents: Vec<usize>,
    },
}
