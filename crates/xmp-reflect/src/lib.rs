//! Distributed arrays with shadows, and a reflect that needs no barrier.
//!
//! The terms are XcalableMP's: a [`Template`] is distributed over [`Nodes`], an array is aligned
//! with it, and its block at each node has a [`Shadow`] around it, copies of elements that other
//! nodes own. The result is a [`Mapping`]; a [`NodeSet`] creates an [`Array`] from it, and updates
//! the shadows by a *reflect*.
//!
//! ```
//! use rdma_fabric::{Fabric, Group, ProgramResult};
//! use xmp_reflect::{Align, Array, Format, Nodes, NodeSet, Order, Reflect, Shadow, Template, Widths};
//!
//! /// Smooths a ring of 100 numbers.
//! async fn smooth(fabric: Fabric) -> ProgramResult<()> {
//!     let group = Group::world(&fabric).await?;
//!     let nodes = Nodes::new(&[group.len()], Order::LastFastest)?;
//!     let template = Template::new(&[0..100], &[Format::Block], &nodes)?;
//!     let mapping = template.align(&[0..100], &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
//!     let mut set = NodeSet::new(group, nodes)?;
//!     let (old, new): (Array<f64>, Array<f64>) = (set.array(&mapping)?, set.array(&mapping)?);
//!     old.fill(|index| index[0] as f64)?;
//!     set.reflect(&old, &Reflect::widths(&[Widths::of(1).periodic()])).await?;
//!     let (from, mut to) = (old.view()?, new.view_mut()?);
//!     for cell in 1..to.len() - 1 {
//!         to[cell] = (from[cell - 1] + from[cell] + from[cell + 1]) / 3.0;
//!     }
//!     assert_eq!(to[1], (from[0] + from[1] + from[2]) / 3.0);
//!     drop((from, to));
//!     set.barrier().await?;
//!     Ok(())
//! }
//! # checks::documented::run(4, &smooth);
//! ```
//!
//! # Source
//! XcalableMP Language Specification 1.4, chapter 4. H. Murai, M. Sato: An efficient implementation
//! of stencil communication for the XcalableMP PGAS parallel programming language, PGAS 2013.

#![forbid(unsafe_code)]
// docs.rs shows which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod asynchronous;
pub mod directives;
mod error;
pub mod mapping;
mod node_set;
pub mod plan;
mod reflect;
mod work;

pub use array::{Array, ArrayView, ArrayViewMut, SectionView, SectionViewMut};
pub use asynchronous::Pending;
pub use error::{Result, XmpError};
pub use mapping::{Align, Bounds, Format, Mapping, MappingError, Nodes, Order, Part, Section, Shadow, Template};
pub use node_set::NodeSet;
pub use plan::{Corners, Plan, PlanError, Split, Transfer, Widths};
pub use prdma_offload::{Element, Packer, Packing, PackingCost, Shares};
#[cfg(feature = "threads")]
pub use reflect::Threads;
pub use reflect::{Explanation, Line, RdmaLimits, Reflect, Reflected, Schedule, Transport};
pub use work::{Indices, IndicesIter, Peeled};
