//! Jobs whose ranks are processes.
//!
//! The launcher creates one nameless memory file, which holds the control block and all segments.
//! It starts the ranks with that file open, and passes each its rank through an environment
//! variable. So no name can be left over in a file system, no other process can join, and the
//! number of files that a process has open does not depend on the number of ranks. A rank is the
//! one process that has claimed it, permanently ([`Holder`](super::job::holder::Holder)). The
//! launcher notices a rank's death through a pidfd of the command that was started for it, and
//! publishes it in the control block. When a launcher dies, the processes that it started are
//! killed.
//!
//! Read the modules in this order: the public interface ([`launcher`], [`placement`]); the
//! launcher's side ([`start`], with [`memory_file`], [`inherit`] and [`signals`]; [`supervise`],
//! with [`rank_process`], [`stderr`] and [`oom_kills`]); a rank's side ([`attach`]); and the access of ranks to
//! each other's existing memory ([`peer_memory`], through the [`broker`], and [`cross_copy`]).
//! [`descriptors`] numbers the files that both sides keep open.

#[cfg(target_os = "linux")]
pub(crate) mod attach;
#[cfg(target_os = "linux")]
pub(crate) mod broker;
#[cfg(target_os = "linux")]
pub(crate) mod cross_copy;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod inherit;
pub(crate) mod launcher;
#[cfg(target_os = "linux")]
pub(crate) mod memory_file;
#[cfg(target_os = "linux")]
pub(crate) mod oom_kills;
#[cfg(target_os = "linux")]
pub(crate) mod peer_memory;
pub(crate) mod placement;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
pub(crate) mod rank_process;
#[cfg(target_os = "linux")]
pub(crate) mod signals;
#[cfg(target_os = "linux")]
pub(crate) mod start;
#[cfg(target_os = "linux")]
mod stderr;
#[cfg(target_os = "linux")]
mod supervise;
