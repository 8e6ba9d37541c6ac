//! What jobs of both providers of `tofu2-sim` share: the errors with which they end, the resources
//! of this machine that they compare their needs with, and the polling of programs.
//!
//! This is an internal crate of `tofu2-sim`, which re-exports the errors. Everything that is hidden
//! here is for the providers, and may change in any version.

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod available;
mod bad_fault;
mod blocked;
mod helper_failed;
mod job_error;
mod poll_apart;

pub use bad_fault::BadFault;
pub use helper_failed::HelperFailed;
pub use job_error::{Awaited, JobError, Stuck, Whom};

#[doc(hidden)]
pub use blocked::{Blocked, blocked_depth};
#[doc(hidden)]
pub use helper_failed::HelperEnd;
#[doc(hidden)]
pub use poll_apart::poll_apart;
