//! The node that owns each element of an array, and the element's location in that node's memory.
//!
//! A mapping is made in XcalableMP's steps:
//!
//! ```
//! use xmp_reflect::{Align, Format, Nodes, Order, Shadow, Template};
//!
//! # fn main() -> Result<(), xmp_reflect::MappingError> {
//! let nodes = Nodes::new(&[2, 2], Order::LastFastest)?;
//! let template = Template::new(&[0..8, 0..9], &[Format::Block, Format::Block], &nodes)?;
//! let mapping = template
//!     .align(&[0..8, 0..9], &[Align::with(0), Align::with(1)])?
//!     .shadow(&[Shadow::of(1), Shadow::Width { lo: 1, hi: 2 }])?;
//!
//! let part = mapping.part(3)?;
//! assert_eq!(part.block(1), Some(5..9));
//! assert_eq!(part.extents(), [1 + 4 + 1, 1 + 4 + 2]);
//! assert_eq!(part.local(&[4, 5]), Some(vec![1, 1]));
//! # Ok(())
//! # }
//! ```
//!
//! *Indices* are those of the array as a whole, between its bounds; *local* indices count from 0 in
//! the memory of one node, shadow included. Bounds are half-open, so Fortran's `1:n` is `1..n + 1`.

#![deny(clippy::arithmetic_side_effects)]

mod align;
mod array;
mod bounds;
mod dimension;
mod error;
mod nodes;
mod part;
mod section;
mod shadow;
mod spread;
mod template;
#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests;

pub use align::Align;
pub use array::Mapping;
pub use bounds::Bounds;
pub(crate) use dimension::{Dimension, count};
pub use error::MappingError;
pub use nodes::{MOST_DIMS, Nodes, Order};
pub use part::Part;
pub use section::Section;
pub use shadow::Shadow;
pub use template::{Format, Template};
