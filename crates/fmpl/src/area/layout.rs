//! The layout of a communicator's memory, which is the same on every member.

#![deny(clippy::arithmetic_side_effects)]

use crate::Options;
use rdma_fabric::{Atomics, Fabric};

/// The bytes of a channel.
const LANE: usize = 128;
/// The bytes before an area's channels.
const HEAD: usize = 64;
/// The number of a sender's messages with one index that can be offered to the receiver at once.
pub(crate) const OFFERS: u64 = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    indices: usize,
    any_indices: usize,
    peers: usize,
    /// Whether a peer's number selects its area, because areas cannot be claimed.
    by_number: bool,
}

/// The channels reserved for collectives: towards the root, and away from it.
const COLLECTIVE: usize = 2;

#[expect(
    clippy::arithmetic_side_effects,
    reason = "`Options::checked` and the number of ranks bound all sizes: below 2^50 bytes"
)]
impl Layout {
    pub(crate) fn new(options: &Options, members: usize, atomics: bool) -> Self {
        let Options { indices, any_indices, peers, .. } = *options;
        Layout { indices, any_indices, peers: if atomics { peers.min(members) } else { members }, by_number: !atomics }
    }

    /// Returns the layout of a communicator of `members` members on a fabric.
    pub(crate) fn of(options: &Options, fabric: &Fabric, members: usize) -> Self {
        Self::new(options, members, fabric.caps().atomics != Atomics::None)
    }

    pub(crate) fn indices(&self) -> usize {
        self.indices
    }

    pub(crate) fn any_indices(&self) -> usize {
        self.any_indices
    }

    /// Returns the number of areas of a member.
    pub(crate) fn peers(&self) -> usize {
        self.peers
    }

    pub(crate) fn is_by_number(&self) -> bool {
        self.by_number
    }

    pub(crate) fn channels(&self) -> usize {
        self.indices + self.any_indices + COLLECTIVE
    }

    /// Returns the channel of an index for messages from unknown senders.
    pub(crate) fn any_channel(&self, index: usize) -> usize {
        self.indices + index
    }

    /// Returns the channel in which collectives send towards the root (0) or away from it (1).
    pub(crate) fn collective_channel(&self, way: usize) -> usize {
        self.indices + self.any_indices + way
    }

    /// The word that senders change so that a receiver from any sender checks its channels again.
    pub(crate) const DOORBELL: usize = 0;
    /// The bytes before the owners: the doorbell has its own cache line.
    const DOORBELL_LINE: usize = 64;

    /// Returns the offset of the word that contains an area's peer.
    pub(crate) fn owner(&self, area: usize) -> usize {
        Self::DOORBELL_LINE + 8 * area
    }

    pub(crate) fn area(&self, area: usize) -> usize {
        Self::DOORBELL_LINE + (8 * self.peers).next_multiple_of(64) + area * self.area_bytes()
    }

    pub(crate) fn area_bytes(&self) -> usize {
        HEAD + self.channels() * LANE
    }

    pub(crate) fn bytes(&self) -> usize {
        self.area(self.peers)
    }

    /// In an area: the number of the peer's posted receives that take any index.
    pub(crate) const WANTED: usize = 0;

    /// In an area: the member, counted from 1, that has left the collectives; 0 if none has.
    pub(crate) const LEFT: usize = 8;

    /// In an area: the flag and the header of the slot.
    pub(crate) const SLOT_FLAG: usize = 16;
    pub(crate) const SLOT_HEADER: usize = 32;

    /// In an area: the offset of a channel.
    pub(crate) fn channel(channel: usize) -> usize {
        HEAD + channel * LANE
    }
}
