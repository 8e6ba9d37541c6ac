//! Advanced Communication Primitives: 64-bit addresses for all registered memory of a job.
//!
//! The problem: programs whose data is one linked structure over all ranks need to name any byte of
//! any rank in one word, to copy and change it wherever it is, and to say which operation follows
//! which, without a buffer for each peer. Here every rank registers memory; each byte of it has a
//! [`GlobalAddress`], which any rank may [copy](Acp::copy) from or to, or change by an
//! [atomic](Acp::atomic), without taking part at the other end. Each operation says which earlier
//! ones it [waits for](Order), so that a chain of copies needs no help by its caller.
//!
//! # Start
//! [`Acp::init`] at all ranks; [`Acp::starter`] memory to tell each other addresses in;
//! [`Acp::allocate`] and [`Acp::register`] for more; [`Acp::complete`]. [`Acp::malloc`] allocates in
//! any rank's heap, where containers such as [`Vector`] and [`Deque`] are; a [`WorkSpace`] is one
//! array over all ranks.
//!
//! # Source
//! T. Nose, Y. Ajima, K. Saga, N. Shida, S. Sumimoto: Performance optimisation of the ACP library
//! (IPSJ 2015-HPC-150); the interface of ACP 3.0.

#![forbid(unsafe_code)]

mod acp;
mod address;
mod amo;
mod container;
mod delegation;
mod directory;
mod engine;
mod error;
mod memory;
mod operations;
mod options;
mod order;
mod pace;
mod queue;
mod resolve;
mod shared;
mod soon;
mod starter;
mod state;
mod values;

pub use acp::Acp;
pub use address::{GlobalAddress, MAX_COLOURS, MAX_RANKS, MAX_REGION_BYTES};
pub use container::{
    Arrangement, Circular, Cursor, Deque, Entry, Iter, Linear, List, ListIter, ListPosition, Map, Multimap, Multiset,
    Position, Sequence, Set, Stored, Striping, TableRef, Vector, WorkSpace,
};
pub use error::{AcpError, OptionError, OutOfBounds, Result};
pub use memory::{Key, RegisterError};
pub use options::{Atomics, Mode, Options, Threads};
pub use order::{Handle, Order};
pub use queue::EntryState;
