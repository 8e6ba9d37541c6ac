//! BLACS: matrices sent, broadcast and combined on grids of processes.
//!
//! Programs of dense linear algebra spread their matrices over a grid of processes. What they
//! exchange are blocks: parts of columns that lie some distance from each other in memory, or
//! triangles. A message passing library knows neither grids nor such blocks, so each program would
//! describe them anew. The *Basic Linear Algebra Communication Subprograms*, on which ScaLAPACK is
//! built, do that once. Here they are in safe Rust, over the matching areas of [`fmpl`].
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
//! # What a message needs
//! Matrices are in column-major order: element (i, j) is `leading` x j + i elements after the first.
//! Rows and columns count from 0, also those of the grid. Sender and receiver agree in the number of
//! elements; how far apart their columns are is everybody's own affair. Only what belongs to the shape
//! is ever read or written.
//!
//! A send ends when its matrix may be used again, whether or not the receiver has come. Messages
//! between two processes arrive in order. Those of different grids never meet, and neither do those
//! between two processes, along rows, along columns and of the whole grid. A message that waits in the
//! sender's memory is fetched by its receiver, without another call of the sender; a broadcast waits for
//! those processes only that have to pass it on ([`Topology`]).
//!
//! # What is the same every time
//! Every receive names its sender, and operands are combined in an order that depends on the topology
//! alone. So all combines are repeatable, bit by bit, whatever [`Parameters::repeatable`] says.
//!
//! # Layers
//! The typed calls, [`Grid::send`] and so on, are thin covers of those with `_bytes` in their names,
//! which take any [`Memory`] with a [`Shape`] and a [`Precision`]: for bindings to other languages.

#![forbid(unsafe_code)]
// docs.rs shows which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blacs;
mod broadcast;
mod combine;
mod element;
mod error;
mod grid;
mod losses;
mod map;
mod memory;
mod packing;
mod parameters;
mod point;
mod scope;
mod shape;
mod ties;
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
