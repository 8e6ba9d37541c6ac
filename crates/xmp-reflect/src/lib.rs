//! Distributed arrays with shadows, and the exchange that updates the shadows.
//!
//! The words are XcalableMP's: a [`Template`] is distributed over [`Nodes`], an array is aligned
//! with it, and its block at each node has a [`Shadow`] around it, copies of elements that other
//! nodes own. The result is a [`Mapping`]; a [`Plan`] says which cells a *reflect* moves between
//! which nodes.
//!
//! # Source
//! XcalableMP Language Specification 1.4, chapter 4. H. Murai, M. Sato: An efficient implementation
//! of stencil communication for the XcalableMP PGAS parallel programming language, PGAS 2013.

#![forbid(unsafe_code)]

pub mod mapping;
pub mod plan;

pub use mapping::{Align, Format, Mapping, MappingError, Nodes, Order, Part, Section, Shadow, Template};
pub use plan::{Corners, Plan, PlanError, Split, Transfer, Widths};
