//! Test programs that run themselves again as other processes.
//!
//! Such a program has its own `main` (`harness = false`), which selects a role by the first argument.
//! Without a role it runs [cases](mod@cases). A case starts [children](child) of the same program.

#![forbid(unsafe_code)]

#[cfg(feature = "cases")]
pub mod cases;
pub mod child;
#[cfg(target_os = "linux")]
pub mod filter;
#[cfg(all(target_os = "linux", feature = "jobs"))]
pub mod jobs;
pub mod programs;
pub mod table;

#[cfg(feature = "cases")]
pub use cases::Case;
