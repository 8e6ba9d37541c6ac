//! A readers-writer lock between unrelated processes, identified by a name, that survives the death
//! of its holders.
//!
//! Programs that know nothing about each other, started at any time and written in any language,
//! share a lock by opening the same name. The name leads to a file that only their user can open.
//! If a process is killed while it holds the lock to write, the others receive [`Error::Torn`]
//! within a few milliseconds: the data that the lock protects may be half-written. One of them
//! takes the lock by [`NamedLock::mend`], repairs the data, and declares it consistent
//! ([`WriteGuard::clear_torn`]); then all of them can continue. The death of a reader, or of a
//! waiting process, only delays the others.
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
//! The lock is [`rma_lock::locks::RecoverableLock`], the protocol that is also used between the
//! ranks of a job; `docs/systems/named-lock.md` describes how unrelated processes become ranks, and
//! the limits.
//!
//! # Threads and forks
//! Any number of threads may use a handle; they exclude each other like processes. A forked child
//! must open the lock again: through its parent's handles it receives [`Error::Forked`], and
//! dropping its parent's guards releases nothing.
//!
//! # Trust
//! No content of the file makes this crate access memory outside of it: every value that is read
//! from the file is checked, and garbage causes [`Error::Foreign`] or [`Error::Lock`], or lets a
//! call wait until its deadline. If another process removes or replaces the file, the next
//! acquisition detects it ([`Error::Removed`], [`Error::Replaced`]). This crate never shortens the
//! file. A process of the same user that truncates it while others have it open ends them by
//! SIGBUS, as with every mapped file.

#![cfg(target_os = "linux")]

// Modules: `lock` is the public interface, and `taking` implements its calls; `session` is the
// process's membership in one *generation* of the lock, which is one file. `founding` makes and
// replaces files, `joining` finds a place in one, `slots` are those places, and `provider` presents
// the mapped memory as the fabric on which the lock's protocol runs.
mod acquire;
mod block_on;
mod create;
mod descriptor;
mod doorbell;
mod error;
mod file;
mod fork;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(test, not(fuzzing)))]
mod fuzz;
mod guard;
mod join;
mod layout;
mod lock;
mod mapping;
mod name;
mod presence;
mod process;
mod provider;
mod removed_files;
mod session;
mod slots;
mod torn;

pub use error::{Error, Result};
pub use fork::this_process;
pub use guard::{ReadGuard, Torn, WriteGuard};
pub use layout::PROCESSES;
pub use lock::NamedLock;
