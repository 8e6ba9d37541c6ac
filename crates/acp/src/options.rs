//! The options of a job that uses global addresses.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    AcpError, ChannelOptions, Result,
    address::{MAX_TAGS, Tag},
};

/// The maximum size of an area that every rank has, in bytes.
const MOST: usize = 4 << 30;
/// The maximum number of entries of a command queue.
const MOST_QUEUED: usize = 1 << 24;

/// The threads that may call one rank's [`Acp`](crate::Acp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The thread that created it. Other threads receive [`AcpError::OtherThread`], except from
    /// waits for operations that are known to be complete.
    #[default]
    One,
    /// Any number of threads at a time: each call takes a lock.
    Many,
}

/// The executor of a rank's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The calls themselves: an operation whose order makes it wait starts in the first later call
    /// after the operations that it waits for have completed.
    #[default]
    Direct,
    /// A helper, which takes commands from a queue: the library of the paper.
    CommandQueue,
    /// Two helpers: the paper's proposal (section 4, figure 8). One takes commands from the queue
    /// and keeps their order; the other executes the operations that other ranks delegate, which
    /// arrive at its own control queue. Needs control queues that share their rank's address space
    /// ([`QueueLimits::shared_address_space`](rdma_fabric::control_queue::QueueLimits)), which
    /// those of Tofu2 do not, and two of them per rank.
    Split,
}

/// The executor of atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atomics {
    /// The network, even if the word is the rank's own; if the network has no atomics, as
    /// [`Atomics::Delegated`].
    #[default]
    Network,
    /// The CPU if the word is the rank's own, otherwise the network.
    LocalByCpu,
    /// The CPU of the word's rank: that rank's program, whenever it waits in a call of this crate,
    /// or its helper.
    Delegated,
}

/// The options of [`Acp::init_with`](crate::Acp::init_with). All ranks pass the same options,
/// except for `threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of each rank's starter memory.
    pub starter_bytes: usize,
    /// Bytes of each rank's heap, from which any rank may allocate.
    pub heap_bytes: usize,
    /// Bytes of each rank's memory for the connection requests of channels.
    pub channel_bytes: usize,
    /// Regions that a rank can have registered at a time, 1 to 253.
    pub regions: usize,
    /// Number of operations that a rank can have in flight, at least 1; the next one waits until
    /// one completes. With a command queue at most 2^24, for each of which the queue has 56 bytes.
    pub depth: usize,
    /// The threads that may call.
    pub threads: Threads,
    /// The sizes of channels.
    pub channels: ChannelOptions,
    /// The executor of operations.
    pub mode: Mode,
    /// In [`Mode::Direct`]: whether a helper serves other ranks, so that they need not wait while
    /// this one computes.
    pub serving_helper: bool,
    /// With a command queue: whether the program posts an operation itself if no command is
    /// incomplete (figure 6 of the paper).
    pub bypass: bool,
    /// With a command queue: whether descriptors are prepared, so that each command only fills in
    /// the parts that differ.
    pub prepared: bool,
    /// The executor of atomics.
    pub atomics: Atomics,
    /// Requests of other ranks that a rank holds before it processes them, 1 to 64; a sender
    /// retries until there is room. If atomics are delegated, each rank instead has two slots of
    /// its own on every rank.
    pub delegation_slots: usize,
}

impl Default for Options {
    /// 10 KiB of starter memory, a heap of 64 KiB, 1 KiB for channels, 64 regions, 4096 operations,
    /// 16 requests, one thread, no helper.
    fn default() -> Self {
        Options {
            starter_bytes: 10 << 10,
            heap_bytes: 64 << 10,
            channel_bytes: 1 << 10,
            regions: 64,
            depth: 4096,
            threads: Threads::One,
            channels: ChannelOptions::default(),
            mode: Mode::Direct,
            serving_helper: false,
            bypass: false,
            prepared: false,
            atomics: Atomics::Network,
            delegation_slots: 16,
        }
    }
}

macro_rules! setters {
    ($($field:ident: $ty:ty),*) => {$(
        #[doc = concat!("Sets [`Options::", stringify!($field), "`].")]
        #[must_use]
        pub fn $field(mut self, value: $ty) -> Self {
            self.$field = value;
            self
        }
    )*};
}

impl Options {
    setters!(starter_bytes: usize, heap_bytes: usize, channel_bytes: usize, regions: usize, depth: usize, threads: Threads, mode: Mode, serving_helper: bool, bypass: bool, prepared: bool, atomics: Atomics, channels: ChannelOptions, delegation_slots: usize);

    /// The maximum number of regions that programs can register.
    const MOST_REGIONS: usize = MAX_TAGS - Tag::FIRST_FREE as usize;

    pub(crate) fn checked(self) -> Result<Self> {
        let bad = |option, range, value| Err(AcpError::option(option, range, value));
        match self {
            Options { regions, .. } if !(1..=Self::MOST_REGIONS).contains(&regions) => {
                bad("regions", "1 to 253", regions)
            }
            Options { delegation_slots, .. } if !(1..=64).contains(&delegation_slots) => {
                bad("delegation_slots", "1 to 64", delegation_slots)
            }
            Options { depth: 0, .. } => bad("depth", "at least 1", 0),
            Options { depth, mode: Mode::CommandQueue | Mode::Split, .. } if depth > MOST_QUEUED => {
                bad("depth", "at most 2^24 with a command queue", depth)
            }
            Options { starter_bytes, .. } if starter_bytes > MOST => {
                bad("starter_bytes", "at most 4 GiB", starter_bytes)
            }
            Options { heap_bytes, .. } if heap_bytes > MOST => bad("heap_bytes", "at most 4 GiB", heap_bytes),
            Options { channel_bytes, .. } if channel_bytes > MOST => {
                bad("channel_bytes", "at most 4 GiB", channel_bytes)
            }
            good => good.channels.check(good.channel_bytes).map(|()| good),
        }
    }
}
