//! Messages as bytes: a length of 4 bytes, a byte for the kind, then the fields, little-endian.

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

/// The most bytes of an item of an exchange, and of a card.
pub const ITEM_LIMIT: usize = 64 << 10;

/// The most bytes of a text; a longer one is cut.
pub const TEXT_LIMIT: usize = 4 << 10;

/// The most bytes of a message to the coordinator, without its length.
pub(crate) const UP_LIMIT: usize = ITEM_LIMIT + 64;

/// A message with its length, which may be on its way to several connections.
pub(crate) type Frame = Arc<[u8]>;

/// Returns the most bytes of a message to a session of a job of `ranks` ranks, without its length.
pub(crate) fn down_limit(ranks: usize, segment: usize) -> usize {
    ranks.saturating_mul(ITEM_LIMIT + TEXT_LIMIT + 128).saturating_add(segment).saturating_add(UP_LIMIT)
}

/// Returns the most bytes of a message to a standby, without its length: a vote.
pub(crate) fn vote_limit(ranks: usize) -> usize {
    down_limit(ranks, 0).saturating_mul(2)
}

/// Cuts `text` to [`TEXT_LIMIT`].
fn cut(text: &str) -> &str {
    let end = (0..=TEXT_LIMIT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
