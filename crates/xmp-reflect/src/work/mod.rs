//! Work mapping: the iterations of a loop nest that each node executes (`loop`).
//!
//! A loop nest is distributed like an array: [`Part::indices`](crate::Part::indices) are the
//! iterations of `loop (i, j) on a(i, j)`, [`Template::indices`](crate::Template::indices) those of
//! `on t(i, j)`. [`Array::peel`](crate::Array::peel) separates those whose stencil reads no shadow,
//! which [`NodeSet::peel_and_wait`](crate::NodeSet::peel_and_wait) executes while the shadow is
//! being updated (`loop … peel_and_wait`).

mod access;
mod indices;
mod peel;

pub use indices::{Indices, IndicesIter};
pub use peel::Peeled;
