//! The exported names of the basic layer. Those of the middle layer are exported by `middle`.

mod access;
mod infrastructure;
pub(crate) mod internal;
mod registration;
