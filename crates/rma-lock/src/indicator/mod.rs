//! Readers that touch nothing but their node, and writers that go to every node.
//!
//! # Words
//! At each node's first rank: its `gate` ([`gate`]), the `limit` that the writer before it waits for, and `waiting`, the stack of readers that found the gate closed. At
//! each rank a flag for each node, for when it writes, and its queue nodes ([`crate::queue`]).
//!
//! # Order
//! A reader announces itself and looks at the gate with one atomic on one word, so nothing can come between. Between a reader that leaves and a writer that
//! waits there is a race of the kind of Dekker's: the reader counts its departure and then gets the limit, the writer puts the limit, makes it
//! visible, and then gets the departures. Each has the result of the first before it posts the second, so at least one of them sees the other; both may, and
//! a flag is lowered once.

mod gate;
mod lock;
mod read;
mod write;

pub use lock::{IndicatorGuard, IndicatorLock};
