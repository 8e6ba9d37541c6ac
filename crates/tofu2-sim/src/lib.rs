//! Two providers that behave like the Tofu2 network interface.
//!
//! * [`shm`]: wall-clock time. Ranks are threads or processes that share memory-mapped segments; an
//!   operation is executed immediately by the CPU that posts it.
//! * [`virt`]: virtual time. One thread simulates up to a million ranks, deterministically, with a
//!   timing model of the machine.

// Lets docs.rs show which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod available;
mod control_queue;
mod exit_report;
#[cfg(all(fuzzing, feature = "timeline"))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(test, not(fuzzing), not(miri), feature = "timeline"))]
mod fuzz;
mod helper_failed;
mod job_error;
mod poll_apart;
pub mod shm;
pub mod virt;

pub use control_queue::QueueMachine;
pub use exit_report::ends_in_words;
pub use helper_failed::HelperFailed;
pub use job_error::{Awaited, JobError, Stuck, Whom};
