//! Moving the bytes of a sequence, which may wrap around to the start of the body.

use super::{
    raw::Raw,
    words::{Form, Piece, Words},
};
use crate::{Result, container::finish::finish};

/// The origin of new bytes.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Given(Vec<u8>),
    /// Global memory that does not overlap the body to be changed.
    Global(Vec<Piece>),
}

impl Source {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Source::Given(bytes) => bytes.len() as u64,
            Source::Global(pieces) => pieces.iter().map(|(_, bytes)| *bytes as u64).sum(),
        }
    }
}

impl Raw {
    /// Reads a source in advance if `always` is set, or if it overlaps the body itself, which may
    /// move.
    pub(super) async fn aside(&self, words: &Words, source: Source, always: bool) -> Result<Source> {
        let moves = |(at, bytes): &Piece| words.may_hold(*at, *bytes as u64);
        match source {
            Source::Global(pieces) if always || pieces.iter().any(moves) => {
                let mut all = Vec::new();
                for (at, bytes) in pieces {
                    all.append(&mut self.acp.read_vec(at, bytes).await?);
                }
                Ok(Source::Given(all))
            }
            source => Ok(source),
        }
    }

    /// Makes a gap at position `at`, by moving the bytes after it forward, or those before it back;
    /// returns the new words.
    #[expect(clippy::arithmetic_side_effects, reason = "inside the capacity, or bytes that exist in memory")]
    pub(super) async fn part(&self, words: Words, at: u64, bytes: u64) -> Result<Words> {
        let behind = words.size - at;
        let mut parted = Words { size: words.size + bytes, ..words };
        if self.form == Form::Deque && at < behind && bytes > 0 {
            parted.offset = (words.offset + words.capacity - bytes) % words.capacity;
            self.shift(&parted, 0, bytes, at).await?;
        } else {
            self.shift(&parted, at + bytes, at, behind).await?;
        }
        Ok(parted)
    }

    /// Closes a gap, by moving the bytes after it back, or those before it forward, and stores the
    /// new words.
    #[expect(clippy::arithmetic_side_effects, reason = "inside the capacity, or bytes that exist in memory")]
    pub(super) async fn close(&self, words: Words, at: u64, bytes: u64) -> Result<()> {
        let raw = self.clone();
        let behind = words.size - at - bytes;
        let mut closed = Words { size: words.size - bytes, ..words };
        finish(&self.acp, |_| async move {
            if raw.form == Form::Deque && at < behind && bytes > 0 {
                raw.shift(&words, bytes, 0, at).await?;
                closed.offset = (words.offset + bytes) % words.capacity;
            } else {
                raw.shift(&words, at, at + bytes, behind).await?;
            }
            raw.store(closed).await
        })
        .await
    }

    /// Moves bytes inside the capacity, which may overlap.
    async fn shift(&self, words: &Words, to: u64, from: u64, bytes: u64) -> Result<()> {
        match (&words.pieces(to, bytes)?[..], &words.pieces(from, bytes)?[..]) {
            ([], _) => Ok(()),
            ([(to, bytes)], [(from, _)]) => self.acp.moved(*to, *from, *bytes).await,
            _ => {
                let mut between = vec![0; bytes as usize];
                self.get(words, from, &mut between).await?;
                self.put(words, to, &between).await
            }
        }
    }

    /// Writes the bytes of a source, starting at position `at`.
    #[expect(clippy::arithmetic_side_effects, reason = "inside the capacity, or bytes that exist in memory")]
    pub(super) async fn fill(&self, words: &Words, mut at: u64, source: Source) -> Result<()> {
        match source {
            Source::Given(bytes) => self.put(words, at, &bytes).await,
            Source::Global(pieces) => {
                for (mut from, bytes) in pieces {
                    for (to, part) in words.pieces(at, bytes as u64)? {
                        self.acp.moved(to, from, part).await?;
                        from = from.checked_add(part as u64).unwrap_or(from);
                    }
                    at += bytes as u64;
                }
                Ok(())
            }
        }
    }

    pub(super) async fn get(&self, words: &Words, at: u64, mut into: &mut [u8]) -> Result<()> {
        for (from, bytes) in words.pieces(at, into.len() as u64)? {
            let (part, rest) = into.split_at_mut(bytes);
            self.acp.read(from, part).await?;
            into = rest;
        }
        Ok(())
    }

    pub(super) async fn put(&self, words: &Words, at: u64, mut from: &[u8]) -> Result<()> {
        for (to, bytes) in words.pieces(at, from.len() as u64)? {
            let (part, rest) = from.split_at(bytes);
            self.acp.write(to, part).await?;
            from = rest;
        }
        Ok(())
    }
}
