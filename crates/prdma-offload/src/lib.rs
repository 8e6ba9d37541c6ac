//! Persistent communication with neighbours, executed by the network without CPUs.
//!
//! The problem: a stencil code exchanges the same halos with the same neighbours thousands of
//! times. Each time, a receiver must be ready before its neighbour's data may overwrite the halo of
//! the previous step; if a CPU has to check for that, either the CPU or the data have to wait. Here
//! the exchange is described once. At each start, its commands go into control queues of the
//! network interface, where they wait for the neighbours' READYs: a READY releases the data without
//! any CPU, while both sides compute.
//!
//! # Start
//! A [`Neighbourhood`] is a group whose members have a [`Topology`];
//! [`Neighbourhood::alltoallw_init`] makes a [`Request`], which is [started](Request::start) and
//! [waited for](Request::wait) once for each step. Its [`Form`] determines the number of queues.
//!
//! [`Collectives`] makes barriers, broadcasts and allreduces of a whole group in the same way.
//! [`Neighbourhood::alltoallw`] exchanges once, without any preparation: the baseline that
//! persistent requests have to beat.
//!
//! # Views
//! A buffer lends its elements ([`Buffer::view`]): where it was made [in place](Buffer::in_place),
//! the memory itself. Uses that would invalidate a reference return [`PrdmaError::InUse`] at run
//! time; the types rule out all others. A view does not outlive its buffer:
//! ```compile_fail,E0597
//! # use prdma_offload::Buffer;
//! # fn program(fabric: &rdma_fabric::Fabric) {
//! let view = {
//!     let field = Buffer::<f64>::in_place(fabric, 8).unwrap();
//!     field.view(0..8).unwrap()
//! };
//! drop(view.len());
//! # }
//! ```
//! nor do its elements outlive it:
//! ```compile_fail,E0505
//! # fn program(field: &prdma_offload::Buffer<f64>) {
//! let view = field.view(0..8).unwrap();
//! let elements = &view[..];
//! drop(view);
//! drop(elements.len());
//! # }
//! ```
//! it lends one row at a time to be written:
//! ```compile_fail,E0499
//! # fn program(field: &prdma_offload::Buffer<f64>) {
//! let mut rows = field.rows_mut(0, 2, &[(4, 2)]).unwrap();
//! let first = rows.row_mut(&[0]);
//! let second = rows.row_mut(&[1]);
//! first[0] = second[0];
//! # }
//! ```
//! none while it can be read:
//! ```compile_fail,E0502
//! # fn program(field: &prdma_offload::Buffer<f64>) {
//! let mut rows = field.rows_mut(0, 2, &[(4, 2)]).unwrap();
//! let first = rows.row(&[0]);
//! rows.row_mut(&[0])[0] = 1.0;
//! drop(first[0]);
//! # }
//! ```
//! and elements are plain data, of which any bits are a value:
//! ```compile_fail,E0277
//! # fn program(fabric: &rdma_fabric::Fabric) {
//! prdma_offload::Buffer::<bool>::in_place(fabric, 8).unwrap();
//! # }
//! ```
//!
//! # Source
//! M. Hatanaka, T. Ogura, M. Takagi, A. Hori, Y. Ishikawa: MPI persistent neighbourhood collectives
//! over Tofu2 protocol offload; MPI 4.1, sections 6.13 and 8.6 to 8.9.

mod aggregation;
mod buffer;
mod collective;
mod cost;
mod engine;
mod error;
mod form;
mod init;
pub mod layout;
mod neighbourhood;
mod nodes;
mod packing;
mod partitioned;
mod points;
mod publish;
mod request;
#[cfg(test)]
mod session_model;
pub mod topology;
mod transient;

pub use aggregation::Aggregation;
pub use buffer::{Buffer, Element, Rows, RowsMut, View, ViewMut};
pub use collective::{Collectives, Pipeline, Shape};
pub use error::{Holder, PrdmaError, Result};
pub use form::{EndOfData, Form, Options};
pub use layout::{Layout, LayoutError};
pub use neighbourhood::Neighbourhood;
pub use packing::{Packer, Packing, PackingCost, Shares};
pub use partitioned::Partitioned;
pub use points::{Claims, Point, exchange_init, points_init};
pub use request::{Request, start_all, wait_all};
pub use topology::{Cartesian, Edge, Side, Topology, TopologyError};
