//! Messages as bytes: a length of 4 bytes, a byte for the kind, then the fields, all little-endian.

mod bytes;
mod down;
mod inbox;
mod refusal;
mod up;
mod vote;

pub(crate) use bytes::{Reader, Writer};
pub(crate) use down::Down;
pub(crate) use inbox::Inbox;
pub(crate) use up::Up;
pub(crate) use vote::Vote;

use std::sync::Arc;

/// The maximum size of an exchange's item, and of a contact, in bytes.
pub const ITEM_LIMIT: usize = 64 << 10;

/// The maximum size of a text in bytes; longer texts are truncated.
pub const TEXT_LIMIT: usize = 4 << 10;

/// The maximum size of a message to the coordinator in bytes, without its length field.
pub(crate) const UP_LIMIT: usize = ITEM_LIMIT + 64;

/// A message with its length field, which may be queued for several connections.
pub(crate) type Frame = Arc<[u8]>;

/// Returns the maximum size in bytes of a message to a session of a job of `ranks` ranks, without
/// its length field.
pub(crate) fn down_limit(ranks: usize, segment: usize) -> usize {
    ranks.saturating_mul(ITEM_LIMIT + TEXT_LIMIT + 128).saturating_add(segment).saturating_add(UP_LIMIT)
}

/// Returns the maximum size in bytes of a message to a standby, a vote, without its length field.
pub(crate) fn vote_limit(ranks: usize) -> usize {
    down_limit(ranks, 0).saturating_mul(2)
}

/// Truncates `text` to [`TEXT_LIMIT`].
fn cut(text: &str) -> &str {
    let end = (0..=TEXT_LIMIT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
