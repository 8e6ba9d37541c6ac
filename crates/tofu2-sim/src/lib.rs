//! Two providers that behave like the Tofu2 network interface.
//!
//! * [`shm`]: wall-clock time. Ranks are threads or processes that share memory-mapped segments; an
//!   operation is executed immediately by the CPU that posts it.
//! * [`virt`]: virtual time. One thread simulates up to a million ranks, deterministically, with a
//!   timing model of the machine.
//!
//! Each provider is a crate, `tofu2-shm` and `tofu2-virt`, which this one re-exports: a program that
//! uses only one of them can depend on that alone.

#![forbid(unsafe_code)]

pub use tofu2_job::{Awaited, HelperFailed, JobError, Stuck, Whom};
#[doc(inline)]
pub use tofu2_shm as shm;
pub use tofu2_shm::{QueueMachine, ends_in_words};
#[doc(inline)]
pub use tofu2_virt as virt;
