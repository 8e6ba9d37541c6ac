//! How a job uses global addresses.

use crate::{
    AcpError, ChannelOptions, Result,
    address::{MAX_TAGS, Tag},
};

/// The most bytes of an area that every rank has.
const MOST: usize = 4 << 30;

/// Who calls one rank's [`Acp`](crate::Acp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The thread that made it. Any other gets [`AcpError::OtherThread`], unless it only waits for
    /// what is known to be complete.
    #[default]
    One,
    /// Any thread, any number at a time: each call takes a lock.
    Many,
}

/// Who carries out the operations of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The calls themselves: an operation whose order makes it wait is started by whichever later
    /// call sees that it need wait no longer.
    #[default]
    Direct,
    /// A helper, which takes commands from a queue: the library of the paper.
    CommandQueue,
    /// Two helpers: the paper's proposal (section 4, figure 8). One takes commands from the queue
    /// and keeps their order; the other carries out what other ranks delegate, which it learns of
    /// at a control queue of its own. Needs control queues that share their rank's address space
    /// ([`QueueLimits::shared_address_space`](rdma_fabric::control_queue::QueueLimits)), which
    /// Tofu2's don't, and two of them a rank.
    Split,
}

/// Who carries out atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atomics {
    /// The network, also where the word is the rank's own; where the network has no atomics, as
    /// [`Atomics::Delegated`].
    #[default]
    Network,
    /// The CPU where the word is the rank's own, otherwise the network.
    LocalByCpu,
    /// The CPU of the word's rank: that rank's program, whenever it waits in a call of this crate,
    /// or its helper.
    Delegated,
}

/// What a job is given by [`Acp::init_with`](crate::Acp::init_with). All ranks give the same,
/// except for `threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of each rank's starter memory.
    pub starter_bytes: usize,
    /// Bytes of each rank's heap, from which anybody may allocate.
    pub heap_bytes: usize,
    /// Bytes of each rank's memory for requests to connect channels.
    pub channel_bytes: usize,
    /// Regions that a rank can have registered at a time, 1 to 253.
    pub regions: usize,
    /// Operations that a rank can have under way; one more waits until one is over.
    pub depth: usize,
    /// Who calls.
    pub threads: Threads,
    /// The sizes of channels.
    pub channels: ChannelOptions,
    /// Who carries out the operations.
    pub mode: Mode,
    /// In [`Mode::Direct`]: whether a helper serves other ranks, so that they need not wait while
    /// this one computes.
    pub serving_helper: bool,
    /// Where there is a queue of commands: whether the program posts an operation itself if no command is
    /// unfinished (figure 6 of the paper).
    pub bypass: bool,
    /// Where there is a queue of commands: whether descriptors are prepared, so that each command only fills
    /// in what differs.
    pub prepared: bool,
    /// Who carries out atomics.
    pub atomics: Atomics,
    /// Requests of other ranks that a rank holds before it looks at them, 1 to 64; whoever has one
    /// more tries again until there is room. Where atomics are delegated, each rank has two places
    /// of its own instead.
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

    /// The most regions that programs can register.
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
