//! Registered memory.

use crate::{
    error::{OfiError, Result},
    key::RemoteKey,
    raw::{Registration, Span},
};
use std::sync::Arc;

/// Registered memory that peers with its key may read and write at any time.
///
/// It is read and written by copying. This process never tears a word of 8 bytes at a multiple of
/// 8; whether words written by peers arrive untorn depends on the provider. Dropping the region
/// closes its registration as soon as no operation of this process uses it; its key is then
/// invalid.
#[derive(Debug)]
pub struct Region {
    registration: Arc<Registration>,
    /// The address of the first byte that peers use.
    base: u64,
}

impl Region {
    pub(crate) fn new(registration: Arc<Registration>, base: u64) -> Self {
        Self { registration, base }
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> usize {
        self.registration.len()
    }

    /// Returns the key with which peers access it.
    pub fn key(&self) -> RemoteKey {
        RemoteKey { key: self.registration.key(), base: self.base, len: self.size() as u64 }
    }

    /// Copies bytes from `offset` on out of the region.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`].
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        let len = into.len();
        if self.registration.read(offset, into) { Ok(()) } else { Err(self.outside(offset, len)) }
    }

    /// Copies bytes into the region from `offset` on.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`].
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        if self.registration.write(offset, from) { Ok(()) } else { Err(self.outside(offset, from.len())) }
    }

    /// Loads the word at `offset`. The writes that precede its store are visible afterwards.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`], [`OfiError::Misaligned`].
    pub fn load(&self, offset: usize) -> Result<u64> {
        self.registration.load(offset).ok_or_else(|| self.no_word(offset))
    }

    /// Stores a word at `offset`. A reader that sees it also sees the preceding writes.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`], [`OfiError::Misaligned`].
    pub fn store(&self, offset: usize, word: u64) -> Result<()> {
        if self.registration.store(offset, word) { Ok(()) } else { Err(self.no_word(offset)) }
    }

    pub(crate) fn span(&self, offset: usize, len: usize) -> Result<Span> {
        Span::new(&self.registration, offset, len).ok_or_else(|| self.outside(offset, len))
    }

    fn no_word(&self, offset: usize) -> OfiError {
        if offset.is_multiple_of(8) {
            self.outside(offset, 8)
        } else {
            OfiError::Misaligned { key: self.registration.key(), offset: offset as u64, width: 8 }
        }
    }

    fn outside(&self, offset: usize, len: usize) -> OfiError {
        let (key, size) = (self.registration.key(), self.size() as u64);
        OfiError::OutOfBounds { whose: "own", key, offset: offset as u64, len, size }
    }
}
