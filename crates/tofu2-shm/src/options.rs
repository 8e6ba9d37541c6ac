//! The options of a job, whether its ranks are threads or processes.

#![deny(clippy::arithmetic_side_effects)]

use super::{job::Plan, processes::placement::Bind, queues::config::QueueOptions};
use core::{str::FromStr, time::Duration};
use rdma_fabric::FabricError;

/// Bytes that a rank can register by default: 256 MiB. Unused bytes take no memory.
pub const DEFAULT_SEGMENT_BYTES: usize = 256 << 20;

/// Bytes that a rank can register, as given in options and environment variables: a number above 0,
/// with an optional binary suffix K, M or G (or KiB, MiB, GiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentBytes(pub usize);

/// The error for a text that is not a [`SegmentBytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a number of bytes above 0, such as 65536, 64M or 1G, or too large")]
pub struct NoSize;

impl FromStr for SegmentBytes {
    type Err = NoSize;

    fn from_str(text: &str) -> Result<Self, NoSize> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match &text[digits.len()..] {
            "" | "B" => 0,
            "K" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return Err(NoSize),
        };
        let number: usize = digits.parse().map_err(|_| NoSize)?;
        number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).map(SegmentBytes).ok_or(NoSize)
    }
}

/// The default time for which all ranks of a job must be parked before it counts as a deadlock.
pub const DEFAULT_STUCK_AFTER: Duration = Duration::from_secs(10);

/// A job's options.
#[derive(Clone, Debug)]
pub(crate) struct JobOptions {
    pub(crate) ranks: usize,
    pub(crate) segment_bytes: usize,
    /// All ranks, if `None`.
    pub(crate) ranks_per_node: Option<usize>,
    pub(crate) bind: Bind,
    pub(crate) queues: QueueOptions,
    pub(crate) stuck_after: Option<Duration>,
}

impl JobOptions {
    pub(crate) fn new(ranks: usize) -> Self {
        JobOptions {
            ranks,
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            ranks_per_node: None,
            bind: Bind::None,
            queues: QueueOptions::default(),
            stuck_after: Some(DEFAULT_STUCK_AFTER),
        }
    }

    /// Returns the plan of a job that starts when the monotonic clock reads `start_ns`.
    ///
    /// # Errors
    /// [`FabricError::Setting`] if the numbers do not describe a valid job.
    pub(crate) fn plan(&self, start_ns: u64) -> Result<Plan, FabricError> {
        let &JobOptions { ranks, ranks_per_node, segment_bytes: heap_bytes, .. } = self;
        Plan { ranks, ranks_per_node: ranks_per_node.unwrap_or(ranks), heap_bytes, start_ns }.checked()
    }
}

/// Implements setter methods for a type with a field `options: JobOptions`.
macro_rules! job_options {
    ($starter:ty) => {
        impl $starter {
            /// Sets the number of bytes that each rank can register
            /// ([`DEFAULT_SEGMENT_BYTES`](crate::DEFAULT_SEGMENT_BYTES) by default).
            /// Unregistered bytes take no memory.
            #[must_use]
            pub fn segment_bytes(mut self, bytes: usize) -> Self {
                self.options.segment_bytes = bytes;
                self
            }

            /// Sets the number of consecutive ranks that form one node.
            #[must_use]
            pub fn ranks_per_node(mut self, ranks: usize) -> Self {
                self.options.ranks_per_node = Some(ranks);
                self
            }

            /// Sets the CPUs that each rank may use, out of those allowed to the calling thread.
            /// The rank's threads and children inherit them.
            #[must_use]
            pub fn bind(mut self, bind: $crate::Bind) -> Self {
                self.options.bind = bind;
                self
            }

            /// Sets how long all ranks may be parked, with nothing able to wake them, before the
            /// job ends with [`JobError::Deadlock`](crate::JobError::Deadlock)
            /// ([`DEFAULT_STUCK_AFTER`](crate::DEFAULT_STUCK_AFTER) by default); `None` means
            /// forever. A rank that sleeps, computes, or runs under an executor other than
            /// [`block_on`](crate::block_on) does not count as parked, however long it takes.
            /// Ranks that may start threads ([`run_rank_with`](crate::run_rank_with)) are
            /// watched only if each is a single-threaded process.
            #[must_use]
            pub fn stuck_after(mut self, bound: Option<core::time::Duration>) -> Self {
                self.options.stuck_after = bound;
                self
            }

            /// Sets the machine whose control queues each node has
            /// ([`QueueMachine::TOFU2`](crate::QueueMachine::TOFU2) by default).
            #[must_use]
            pub fn queue_machine(mut self, machine: $crate::QueueMachine) -> Self {
                self.options.queues.machine = machine;
                self
            }

            /// Sets whether an address on one control queue denotes the same memory on the rank's
            /// other queues, because their steering tags share one table. No Tofu2 hardware can do
            /// this.
            #[must_use]
            pub fn shared_address_space(mut self, shared: bool) -> Self {
                self.options.queues.shared_address_space = shared;
                self
            }

            /// Sets whether each rank has a progress thread. It executes commands that other ranks
            /// released and handed over, while the rank itself computes without making calls;
            /// otherwise it sleeps.
            #[must_use]
            pub fn progress_thread(mut self, progress: bool) -> Self {
                self.options.queues.progress_thread = progress;
                self
            }
        }
    };
}

pub(crate) use job_options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_suffixes_and_nonsense_is_refused() {
        for (text, size) in [("4096", 4096), ("64K", 64 << 10), ("64MiB", 64 << 20), ("2G", 2 << 30), ("8B", 8)] {
            assert_eq!(text.parse(), Ok(SegmentBytes(size)), "{text}");
        }
        for text in ["", "K", "0", "1.5M", "12X", "-1", "99999999999999999999", "18446744073709551615G"] {
            assert_eq!(text.parse::<SegmentBytes>(), Err(NoSize), "{text}");
        }
    }
}
