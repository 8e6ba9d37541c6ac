//! Typed global memory: pointers, slices and atomics.
//!
//! They are plain numbers: making one allocates nothing, keeps nothing alive and communicates with
//! no rank. Properties that follow from the address alone, its alignment and the bounds of a slice,
//! are checked when they are made; whether there is such a region, when they are used.

mod atomic;
mod link;
mod memory;
mod ptr;
mod slice;

pub use atomic::GlobalAtomic;
pub use link::Link;
pub use ptr::GlobalPtr;
pub use slice::GlobalSlice;
