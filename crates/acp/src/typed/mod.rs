//! Global memory as elements: pointers, slices and atomics that know their type.
//!
//! They are plain numbers: making one allocates nothing, keeps nothing alive and asks nobody. What
//! follows from the address alone, its alignment and the bounds of a slice, is checked when they
//! are made; whether there is such a region, when they are used.

mod atomic;
mod link;
mod memory;
mod ptr;
mod slice;

pub use atomic::GlobalAtomic;
pub use link::Link;
pub use ptr::GlobalPtr;
pub use slice::GlobalSlice;
