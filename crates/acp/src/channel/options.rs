//! The sizes of channels.

#![deny(clippy::arithmetic_side_effects)]

use super::table;
use crate::{AcpError, Result};

/// The sizes of channels, set by [`Options::channels`](crate::Options::channels). They must be the
/// same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Bytes of a message that fit one slot, besides the slot's header of 8 bytes. A longer message
    /// takes several slots.
    pub slot_bytes: usize,
    /// Slots of a receiver.
    pub receive_slots: usize,
    /// Slots that a sender puts at a time, before it waits until their bytes have been sent.
    pub send_slots: usize,
    /// Number of requests for which a channel allocates memory when it is created. It is not a
    /// limit.
    pub requests: usize,
    /// Connection requests that a rank's table holds. A sender that finds the table full retries.
    pub table_entries: usize,
}

impl Default for ChannelOptions {
    /// Slots of 2048 bytes, 8 to receive and 2 to send, 8 requests, 8 connection requests.
    fn default() -> Self {
        ChannelOptions { slot_bytes: 2048, receive_slots: 8, send_slots: 2, requests: 8, table_entries: 8 }
    }
}

impl ChannelOptions {
    /// The maximum of each size and count.
    const MOST: usize = 1 << 24;

    pub(crate) fn check(&self, channel_bytes: usize) -> Result<()> {
        let ChannelOptions { slot_bytes, receive_slots, send_slots, requests, table_entries } = *self;
        for (option, value, least) in [
            ("channels.slot_bytes", slot_bytes, 1),
            ("channels.receive_slots", receive_slots, 1),
            ("channels.send_slots", send_slots, 1),
            ("channels.requests", requests, 0),
            ("channels.table_entries", table_entries, 1),
        ] {
            if !(least..=Self::MOST).contains(&value) {
                return Err(AcpError::option(option, "1 to 2^24", value));
            }
        }
        match table::bytes(table_entries) {
            bytes if bytes > channel_bytes => {
                Err(AcpError::option("channel_bytes", "room for the table of channels", channel_bytes))
            }
            _ => Ok(()),
        }
    }

    /// Returns the bytes from one slot to the next.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "options have limits, and answers of more than half of all bytes are refused"
    )]
    pub(super) fn stride(slot_bytes: usize) -> usize {
        (super::link::HEADER_BYTES + slot_bytes).next_multiple_of(8)
    }
}
