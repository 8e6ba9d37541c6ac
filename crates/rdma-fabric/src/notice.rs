//! Notices: how a target learns that a put arrived without looking at its memory.

use crate::{Rank, RegionKey};

/// Told to the target of a put that asked for it, after the data is visible there.
///
/// The counterpart of Tofu's remote MRQ notice (`edata`), libfabric's remote CQ data and notified access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// Who put.
    pub from: Rank,
    /// What the poster chose, at most [`crate::Caps::notice_bits`] wide.
    pub data: u64,
    /// The region that was written.
    pub region: RegionKey,
    /// Offset of the byte *after* the last one written, as Tofu reports it.
    pub end: u64,
}

/// What a put does at its target besides moving bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Leave a [`Notice`] with this data.
    pub notice: Option<u64>,
}
