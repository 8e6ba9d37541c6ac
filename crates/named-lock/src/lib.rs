//! A readers-writer lock between unrelated processes, by a name, that survives their deaths.
//!
//! Programs that know nothing of each other, started at any time and in any language, take the same
//! lock by opening the same name. The name leads to a file that only their user can open. If a
//! process is killed while it holds the lock to write, the others are told so within some
//! milliseconds ([`Error::Torn`]): what the lock protects may be half-written. One of them takes the
//! lock by [`NamedLock::mend`], repairs the data, declares so ([`WriteGuard::clear_torn`]), and all
//! go on. The death of a reader, or of a process that waits, only delays the others.
//!
//! ```
//! use named_lock::{Error, NamedLock};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let open = || NamedLock::open_path(folder.path().join("accounts"));
//! let lock = open()?; // NamedLock::open("accounts")?
//! let guard = match lock.write() {
//!     Err(Error::Torn { by, .. }) => {
//!         let mut guard = lock.mend()?;
//!         if guard.torn().is_some() {
//!             println!("process {by} died while it wrote");
//!             // Look at the data, make them whole.
//!             guard.clear_torn()?;
//!         }
//!         guard
//!     }
//!     guard => guard?,
//! };
//! // ... write what the lock protects ...
//! guard.release()?;
//! # Ok::<(), named_lock::Error>(())
//! ```
//!
//! The lock is [`rma_lock::locks::RecoverableLock`], the same protocol as between the ranks of a job;
//! `docs/systems/named-lock.md` says how unrelated processes become ranks, and where the limits are.
//!
//! # Threads and forks
//! A handle may be used by any number of threads, which exclude each other like processes. A child
//! that was forked must open the lock anew: through its parent's handles it gets [`Error::Forked`],
//! and dropping its parent's guards releases nothing.
//!
//! # Trust
//! Nothing that the file holds makes this crate access memory outside of it: what is read there is
//! checked, and garbage gives [`Error::Foreign`] or [`Error::Lock`], or lets a call wait until its
//! deadline. A file that is removed or replaced by others is noticed by the next acquisition
//! ([`Error::Removed`], [`Error::Replaced`]). This crate never makes the file shorter. A process of the same user that truncates it
//! while others have it open ends them by SIGBUS, as with every file that is mapped.

#![cfg(target_os = "linux")]

// Where to begin: `lock` is what a program calls, `taking` what such calls do, and `session` is its process as a member of one
// *generation* of the lock, which is one file. `founding` makes and replaces files, `joining` finds
// a place in one, `slots` are those places, and `provider` is the memory as the fabric over which
// the lock's protocol runs.
mod bell;
mod block_on;
mod descriptor;
mod error;
mod file;
mod fork;
mod founding;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(test, not(fuzzing)))]
mod fuzz;
mod guard;
mod joining;
mod layout;
mod lock;
mod mapping;
mod name;
mod presence;
mod process;
mod provider;
mod session;
mod slots;
mod strays;
mod taking;
mod torn;

pub use error::{Error, Result};
pub use fork::this_process;
pub use guard::{ReadGuard, Torn, WriteGuard};
pub use layout::PROCESSES;
pub use lock::NamedLock;
