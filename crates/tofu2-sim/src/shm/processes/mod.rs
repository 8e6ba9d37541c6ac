//! Jobs whose ranks are processes.
//!
//! The launcher makes one control block and one segment per rank as nameless memory files, starts the ranks with
//! those files open, and tells each by an environment variable who it is. So nothing has a name that could be left
//! over, and nobody else can join. A rank's death is noticed through its pidfd, by the launcher, which publishes it in
//! the control block; a launcher's death kills its ranks.

mod attach;
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
