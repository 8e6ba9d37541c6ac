//! The slot of an area: one receive of any index, which the sender matches (paper, section 2.5).
//!
//! The slot is in the head of an area and belongs to no channel. The receiver puts a header there,
//! the sender answers with a flag that names the index of the message:
//!
//! ```text
//!  bytes    what the peer puts there
//!  16..32   flag    of the last message to this member that used a header of the slot: two words
//!  32..64   header  of the receive of any index that it has posted
//! ```
//!
//! All words of a header carry the number of the header, those of a flag the number of the flag.
//! A header also has the number of offers that its receiver had seen, which states whether it is valid:
//! see [`crate::any`].

use super::{
    Channel, Ends, Kind, Layout, Record,
    record::{is_about, tag, tag_of},
};
use crate::Result;
use rdma_fabric::{Fabric, Handle, join::race_all};

/// The words of a header.
const WORDS: usize = 4;

/// The slot in two areas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a>(Channel<'a>);

/// The words at the place of a header; those after the first one were loaded only if that begins a
/// header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderWords {
    words: [u64; WORDS],
    is_header: bool,
}

impl HeaderWords {
    /// Returns the header and its number, of which 16 bits are known; `None` unless it is complete.
    pub(crate) fn header(&self) -> Option<(u16, Record)> {
        let number = tag_of(self.words[0]);
        let header = Record::of_words(self.words, u64::from(number)).filter(|_| self.is_header)?;
        Some((number, header))
    }
}

/// How a message that used a header of the slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotFlag {
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    pub(crate) index: usize,
}

impl<'a> Slot<'a> {
    pub(crate) fn new(fabric: &'a Fabric, ends: &'a Ends) -> Self {
        Slot(Channel::at_head(fabric, ends))
    }

    // ----- at the sender -------------------------------------------------------------------------

    /// Returns the words at the place of the peer's header.
    pub(crate) fn words(&self) -> Result<HeaderWords> {
        let mut words = [self.0.load(Layout::SLOT_HEADER)?, 0, 0, 0];
        let is_header = Record::kind_of(words[0]) == Kind::Posted;
        for (at, word) in words.iter_mut().enumerate().skip(1).filter(|_| is_header) {
            *word = self.0.load(Layout::SLOT_HEADER + 8 * at)?;
        }
        Ok(HeaderWords { words, is_header })
    }

    /// Waits until the words at the place of the peer's header are others.
    pub(crate) async fn until_changed(self, HeaderWords { words, is_header }: HeaderWords) -> Result<()> {
        let word = |(at, seen)| self.0.until(Layout::SLOT_HEADER + 8 * at, move |word| word != seen);
        let seen = if is_header { WORDS } else { 1 };
        race_all(words.into_iter().take(seen).enumerate().map(word)).await
    }

    /// Posts a flag behind a body; returns the handle unless the put completes immediately.
    pub(crate) async fn post_flag(&self, n: u64, word: u64, index: usize) -> Result<Option<Handle<()>>> {
        self.0.post(Layout::SLOT_FLAG, [word, tag(n) | index as u64]).await
    }

    /// Puts a flag from a detached task.
    pub(crate) async fn put_deferred_flag(&self, n: u64, word: u64, index: usize) -> Result<()> {
        self.0.put_unprepared(Layout::SLOT_FLAG, [word, tag(n) | index as u64]).await
    }

    // ----- at the receiver -----------------------------------------------------------------------

    /// Puts header `n`, and charges for it.
    pub(crate) async fn put_header(&self, n: u64, header: Record) -> Result<()> {
        self.0.put_charged(Layout::SLOT_HEADER, header.to_words(n)).await
    }

    /// Returns flag `n` of the peer.
    pub(crate) fn flag(&self, n: u64) -> Result<Option<SlotFlag>> {
        let (first, second) = (self.0.load(Layout::SLOT_FLAG)?, self.0.load(Layout::SLOT_FLAG + 8)?);
        if !is_about(first, n) || !is_about(second, n) {
            return Ok(None);
        }
        // A kind that a sender does not put counts as a refusal.
        let (kind, bytes) = match Record::of_first_word(first) {
            Some(Record { kind, bytes, .. }) => (kind, bytes),
            None => (Kind::TooLong, 0),
        };
        Ok(Some(SlotFlag { kind, bytes, index: (second & u64::from(u32::MAX)) as usize }))
    }

    /// Waits for flag `n`.
    pub(crate) async fn until_flag(self, n: u64) -> Result<()> {
        self.0.until(Layout::SLOT_FLAG, |word| is_about(word, n)).await?;
        self.0.until(Layout::SLOT_FLAG + 8, |word| is_about(word, n)).await
    }
}
