//! Typed global memory: pointers, slices and atomics.
//!
//! They are plain numbers: creating one does not allocate memory, keep anything alive or
//! communicate. Properties that follow from the address alone (its alignment and the bounds of a
//! slice) are checked on creation; the existence of the region is checked on use.

#![deny(clippy::arithmetic_side_effects)]

mod atomic;
mod link;
mod memory;
mod ptr;
mod slice;

pub use atomic::GlobalAtomic;
pub use link::Link;
pub use ptr::GlobalPtr;
pub use slice::GlobalSlice;
