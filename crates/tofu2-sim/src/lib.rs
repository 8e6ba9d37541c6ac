//! A provider that behaves like the Tofu2 network interface.
//!
//! * [`virt`]: virtual time. One thread simulates up to a million ranks, deterministically, with a timing
//!   model of the machine.

mod job_error;
pub mod virt;

pub use job_error::JobError;
