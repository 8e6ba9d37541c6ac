//! Persistent communication with neighbours that the network runs by itself.
//!
//! The problem: a stencil code exchanges the same borders with the same neighbours thousands of
//! times. Each time a receiver must be ready before its neighbour's data may overwrite the border
//! of the previous step; if a CPU has to look for that, either it waits or the data do. Here the
//! exchange is described once. At each start its commands go into control queues of the network
//! interface, where they wait for the neighbours' READYs: what a READY releases leaves without any
//! CPU, while both sides compute.
//!
//! # Start
//! A [`Neighbourhood`] is a group whose members have a [`Topology`];
//! [`Neighbourhood::alltoallw_init`] makes a [`Request`], which is [started](Request::start) and
//! [waited for](Request::wait) once for each step. Its [`Form`] says how many queues it uses.
//!
//! [`Collectives`] makes barriers, broadcasts and allreduces of a whole group in the same way.
//! [`Neighbourhood::alltoallw`] exchanges once, with nothing made beforehand: the baseline that all
//! this has to beat.
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
pub use form::{Form, Options};
pub use layout::{Layout, LayoutError};
pub use neighbourhood::Neighbourhood;
pub use partitioned::Partitioned;
pub use points::{Claims, Point, exchange_init, points_init};
pub use request::{Request, start_all, wait_all};
pub use topology::{Cartesian, Edge, Side, Topology, TopologyError};
