//! The sizes of the matching areas, and the time after which a send stops waiting for its receive.

#![deny(clippy::arithmetic_side_effects)]

#[cfg(doc)]
use crate::Communicator;
use crate::{Choice, FmplError, Result, area::Layout};
use core::time::Duration;
use rdma_fabric::Fabric;

/// The options of [`Fmpl::init_with`](crate::Fmpl::init_with). All ranks must pass the same values,
/// except for those of the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Options {
    pub(crate) indices: usize,
    pub(crate) any_indices: usize,
    pub(crate) peers: usize,
    pub(crate) spool_bytes: usize,
    pub(crate) time_out: Option<Duration>,
    /// The longest time that a send waits before the spool grows; `None` if it never grows.
    pub(crate) patience: Option<Duration>,
    pub(crate) threads: Threads,
    pub(crate) collectives: Choice,
    pub(crate) staging: usize,
    pub(crate) window: usize,
}

/// The threads of a rank that may use a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Threads {
    /// The thread that created it; others receive [`FmplError::OtherThread`].
    #[default]
    One,
    /// Any thread, at the cost of an atomic operation for each call.
    Many,
}

impl Default for Options {
    /// 8 indices, 2 for unknown senders, areas for 64 peers, no spool, one thread; the measured
    /// table of collectives, staging buffers of 64 KiB, windows of 64 KiB.
    fn default() -> Self {
        Options {
            indices: 8,
            any_indices: 2,
            peers: 64,
            spool_bytes: 0,
            time_out: None,
            patience: None,
            threads: Threads::One,
            collectives: Choice::Measured,
            staging: 64 << 10,
            window: 64 << 10,
        }
    }
}

impl Options {
    /// Sets the number of indices between each pair of members, 1 to 32,768: this many messages can
    /// be outstanding in each direction.
    pub fn indices(mut self, indices: usize) -> Self {
        self.indices = indices;
        self
    }

    /// Sets the number of indices for messages to receives from any sender, 0 to 32.
    pub fn any_indices(mut self, indices: usize) -> Self {
        self.any_indices = indices;
        self
    }

    /// Sets the number of members with which each member may exchange messages, in each
    /// communicator, including itself. An area takes 64 bytes, plus 128 for each index; only areas
    /// of peers in use are ever written to.
    pub fn peers(mut self, peers: usize) -> Self {
        self.peers = peers;
        self
    }

    /// Sets aside `bytes` bytes for messages whose receive is not posted within `time_out`: the
    /// send then copies its message there and completes. [`Duration::ZERO`] buffers every message
    /// that is sent before its receive is posted. While there is no room in the spool, sends
    /// continue to wait. [`Communicator::set_spool`] changes both values later.
    pub fn spool(mut self, bytes: usize, time_out: Duration) -> Self {
        (self.spool_bytes, self.time_out) = (bytes, Some(time_out));
        self
    }

    /// Lets the spool grow, so that sends do not wait for room there. When no memory is left, a
    /// send fails with [`FmplError::SpoolFull`]; a message of more than a quarter of the rank's
    /// memory waits for its receive, so that its success does not depend on which side calls first.
    /// If two messages of an index wait, a third one is spooled when the first has been fetched, or
    /// after `patience`, which elapses only once as long as the receiver fetches none. So a sender
    /// does not run far ahead of a receiver that keeps up.
    pub fn growing(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets which threads may use the communicators.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Sets how the algorithms of collectives are chosen.
    pub fn collectives(mut self, choice: Choice) -> Self {
        self.collectives = choice;
        self
    }

    /// Sets the size of each of the three buffers of a communicator for hardware multicasts, 64 bytes
    /// to 16 MiB. They are allocated only if multicasts are used.
    pub fn staging(mut self, bytes: usize) -> Self {
        self.staging = bytes;
        self
    }

    /// Sets the size of each of the two buffers of a receive [into any
    /// memory](Communicator::recv_into), 8 bytes to 16 MiB: longer messages are transferred in
    /// parts of this size.
    pub fn window(mut self, bytes: usize) -> Self {
        self.window = bytes;
        self
    }

    /// Returns the number of bytes that the matching areas of the world take at each rank
    /// ([`Fmpl::init_in`](crate::Fmpl::init_in)).
    ///
    /// # Errors
    /// [`FmplError::Option`].
    pub fn area_bytes(&self, fabric: &Fabric) -> Result<usize> {
        Ok(Layout::of(&self.clone().checked()?, fabric, fabric.ranks()).bytes())
    }

    pub(crate) fn checked(self) -> Result<Self> {
        within("indices", "1 to 32768", self.indices, 1, 1 << 15)?;
        within("any_indices", "0 to 32", self.any_indices, 0, 32)?;
        within("peers", "1 to 2097152", self.peers, 1, 1 << 21)?;
        within("staging", "64 to 16777216", self.staging, 64, 16 << 20)?;
        within("window", "8 to 16777216", self.window, 8, 16 << 20)?;
        Options::check_spool(self.spool_bytes)?;
        Ok(self)
    }

    pub(crate) fn check_spool(bytes: usize) -> Result<()> {
        within("spool", "0 to the half of all addresses", bytes, 0, isize::MAX as usize)
    }
}

fn within(option: &'static str, allowed: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    let fits = (least..=most).contains(&value);
    if fits { Ok(()) } else { Err(FmplError::Option { option, allowed, value: value as u64 }) }
}
