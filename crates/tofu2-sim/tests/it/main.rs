//! The crate, seen from outside.

mod virt;
