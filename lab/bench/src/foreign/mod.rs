//! Programs of others, which measurements run beside ours.

pub(crate) mod lines_of;
pub(crate) mod mpi;
pub(crate) mod source;
pub(crate) mod ucx;
