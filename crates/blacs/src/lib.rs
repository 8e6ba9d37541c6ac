//! BLACS: matrices sent, broadcast and combined on grids of processes.
//!
//! Programs of dense linear algebra distribute their matrices over a grid of processes and exchange
//! blocks: parts of columns that are separated in memory by the leading dimension, or triangles. A
//! message-passing library has neither grids nor such blocks, so every program would have to
//! implement them again. The *Basic Linear Algebra Communication Subprograms*, on which ScaLAPACK
//! is built, provide both. This crate implements them in safe Rust, over the matching areas of
//! [`fmpl`].
//!
//! ```
//! use blacs::{Blacs, Matrix, MatrixMut, Order, Scope, Topology};
//! use rdma_fabric::{Fabric, ProgramResult};
//!
//! async fn program(fabric: Fabric) -> ProgramResult<()> {
//!     let mut blacs = Blacs::begin(&fabric).await?;
//!     if let Some(grid) = blacs.grid(Order::RowMajor, 2, 2).await? {
//!         // The first column of a matrix of 3 x 2 whose columns are 4 elements apart goes along the row.
//!         let mut block = [grid.column() as f64; 8];
//!         if grid.column() == 0 {
//!             let a = Matrix::new(&block, 3, 1, 4)?;
//!             grid.broadcast_send(Scope::Row, Topology::Default, a).await?;
//!         } else {
//!             let a = MatrixMut::new(&mut block, 3, 1, 4)?;
//!             grid.broadcast_recv(Scope::Row, Topology::Default, a, (grid.row(), 0)).await?;
//!         }
//!         // The sum over all processes is wanted by all.
//!         let a = MatrixMut::new(&mut block, 4, 2, 4)?;
//!         grid.sum(Scope::All, Topology::Default, a, None).await?;
//!         grid.exit().await?;
//!     }
//!     Ok(blacs.exit().await?)
//! }
//! # checks::documented::run(4, &program);
//! ```
//!
//! # Messages
//! Matrices are in column-major order: element (i, j) is `leading` x j + i elements after the
//! first. Rows and columns are counted from 0, including those of the grid. Sender and receiver
//! agree on the number of elements; each chooses its own distance between columns. Only elements of
//! the shape are read or written.
//!
//! A send completes when its matrix may be reused, whether or not the receiver has posted a
//! receive. Messages between two processes arrive in order. Messages of different grids are
//! independent, and so are those between two processes, along rows, along columns and of the whole
//! grid. The receiver fetches a message that waits in the sender's memory without another call of
//! the sender; a broadcast waits only for processes that have to forward it ([`Topology`]), and, where
//! the network multicasts, one in the default topology for the members of the scope.
//!
//! # Repeatability
//! Every receive names its sender, and operands are combined in an order that depends on the topology
//! alone. So all combines are bitwise repeatable, whatever the value of [`Parameters::repeatable`].
//!
//! # Layers
//! The typed calls, such as [`Grid::send`], are thin wrappers around those with `_bytes` in their
//! names, which take any [`Memory`] with a [`Shape`] and a [`Precision`]: for bindings to other
//! languages.

#![forbid(unsafe_code)]
// Lets docs.rs show which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blacs;
mod broadcast;
mod combine;
mod cost;
mod element;
mod error;
mod grid;
mod lines;
mod losses;
mod map;
mod memory;
mod packing;
mod parameters;
mod point;
mod reduce;
mod scope;
mod shape;
mod topology;

pub use blacs::{Blacs, Options};
pub use combine::{Combine, Winners};
pub use element::{Element, Precision};
pub use error::{BlacsError, Result};
pub use fmpl::Threads;
pub use grid::Grid;
pub use map::{GridMap, Order};
pub use memory::{Matrix, MatrixMut, Memory, MemoryMut};
pub use parameters::Parameters;
pub use scope::Scope;
pub use shape::{Diag, Part, Shape, Uplo};
pub use topology::Topology;
