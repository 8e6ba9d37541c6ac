//! Jobs whose ranks are processes.
//!
//! The launcher makes one nameless memory file, which holds the control block and all segments, starts the ranks with that
//! file open, and tells each by an environment variable who it is. So there is no name in a file system that could be left
//! over, nobody else can join, and what a process has open does not depend on the number of ranks. A rank is the one process
//! that has taken it, for good ([`Control::take`](super::control::Control::take)). Its death is noticed through a pidfd of
//! the command that was started for it, by the launcher, which publishes it in the control block; a launcher's death kills
//! the processes that it started.

mod attach;
mod desk;
mod end;
mod forward;
mod inherit;
mod job_variable;
pub(super) mod memory_file;
pub(super) mod peer_memory;
mod relay;
mod signals;
mod split;
mod start;
mod supervise;

pub(super) use attach::from_env;
pub(super) use start::run;
