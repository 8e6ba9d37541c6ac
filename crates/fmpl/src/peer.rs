//! What a member keeps about one peer.

use crate::{
    FmplError, Result,
    any::{AnySlot, TakenOffers},
    area::Ends,
    peer_channels::Channels,
    spool::{Queue, Reading},
};
use rdma_fabric::{LocalSpan, Pod, RemoteAddr, RemoteSpan, RemoteWord};
use std::collections::VecDeque;

/// The state of one peer.
pub(crate) struct Peer {
    /// Its number.
    pub(crate) member: usize,
    pub(crate) ends: Ends,
    /// The word that this member changes after an offer to a receive from any sender, once it is
    /// resolved.
    pub(crate) doorbell: Option<RemoteWord<u64>>,
    pub(crate) channels: Channels,
    pub(crate) any: AnyIndex,
    pub(crate) slot: AnySlot,
    /// When a send's patience expired: its channel, and the number of messages that the peer had taken
    /// from it.
    pub(crate) stalled: Option<(usize, u64)>,
}

/// The receives from one peer that take any index.
#[derive(Debug, Default)]
pub(crate) struct AnyIndex {
    /// The number of receives posted so far.
    pub(crate) made: u64,
    /// Those that are posted, by number.
    pub(crate) queue: VecDeque<u64>,
    /// The number of wanted messages last published to the peer.
    pub(crate) told: u64,
}

/// The messages of one channel in both directions.
#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// The number of messages to the peer that have been put or spooled.
    pub(crate) sent: u64,
    /// How many of these the peer is known to have received.
    pub(crate) taken: u64,
    /// Whether a send is in progress.
    pub(crate) sending: bool,
    /// The messages to the peer that are not in a flag; `None` until there is one.
    pub(crate) queue: Option<Box<Queue>>,
    /// Why a spooled message could not be announced; none can be sent after it.
    pub(crate) failed: Option<Box<FmplError>>,
    /// The result of a send that [`Sending::wait`](crate::Sending::wait) returns, once there is
    /// one.
    pub(crate) isend: Option<Option<Result<(), Box<FmplError>>>>,
    /// This member's place in the peer's queue.
    pub(crate) reading: Reading,
    /// The messages that this member has taken.
    pub(crate) offers: TakenOffers,
    /// The number of messages received from the peer.
    pub(crate) received: u64,
    /// Whether a receive is in progress.
    pub(crate) receiving: bool,
    /// The last message that was offered but too long.
    pub(crate) refused: Option<u64>,
    /// Whether the last header may still be in flight, because its message was offered.
    pub(crate) unseen: bool,
    /// The buffer of the last receive, kept so that a receive into the same buffer only compares
    /// it, without changing a reference count.
    pub(crate) into: Option<LocalSpan<u8>>,
    /// Whether that receive was dropped before its message arrived.
    pub(crate) abandoned: bool,
    /// The buffers of that receive, if it was one into any memory.
    pub(crate) window: Option<crate::point::Window>,
    /// The last receive buffer that was resolved, at the peer.
    pub(crate) target: Option<RemoteSpan<u8>>,
}

// A member has one for each channel of each peer that it uses.
const _: () = assert!(size_of::<ChannelState>() <= 280);

impl ChannelState {
    /// Records the buffer of a receive.
    #[inline(always)]
    pub(crate) fn keep_buffer<T: Pod>(&mut self, into: &LocalSpan<T>) -> Result<&LocalSpan<u8>> {
        let bytes = into.len() * size_of::<T>();
        match &mut self.into {
            Some(kept) if kept.addr() == into.addr() && kept.len() == bytes => {}
            other => *other = Some(into.as_bytes()?),
        }
        Ok(self.into.as_ref().expect("a buffer that has just been kept"))
    }

    /// Returns the buffer of `bytes` bytes at this address of the peer, if it is the last one that
    /// was resolved.
    pub(crate) fn target_at(&self, at: RemoteAddr, bytes: usize) -> Option<&RemoteSpan<u8>> {
        self.target.as_ref().filter(|known| known.addr() == at && known.len() == bytes)
    }

    /// Counts a message that was put into its receive buffer. The receive was posted after the peer
    /// had received all earlier messages; whether the peer has seen this one is unknown.
    #[inline(always)]
    pub(crate) fn count_direct(&mut self) {
        self.taken = self.sent;
        self.sent += 1;
    }
}
