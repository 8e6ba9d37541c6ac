//! Operations of an endpoint on words of peers: single-copy atomic, and atomic with respect to each
//! other.

use crate::{
    AtomicKind, Endpoint, Peer, RemoteKey, WordKind,
    error::{OfiError, Result},
    raw::{Holds, Work},
};
use rdma_fabric::Amo;

impl Endpoint {
    /// Posts an atomic on a word of `width` bytes, 4 or 8, in a peer's region. Its result is the
    /// previous value of the word; the upper half of 4-byte operands is ignored. A swap, which is
    /// `FI_ATOMIC_WRITE`, is also the way to store a word atomically: libfabric 1.17's `shm` frees
    /// its buffer twice if the old value is not fetched. Unlike puts, atomics deliver no data to
    /// the peer.
    ///
    /// # Errors
    /// As for [`Endpoint::put`]; [`OfiError::Misaligned`], also for other widths;
    /// [`OfiError::NoAtomic`].
    pub fn change(
        &mut self,
        peer: Peer,
        word: RemoteKey,
        offset: u64,
        width: usize,
        amo: Amo<u64>,
        tag: u64,
    ) -> Result<bool> {
        self.on_word(peer, word, (offset, width), AtomicKind::of(amo), Work::Change(amo, width), tag)
    }

    /// Posts a single-copy-atomic load of a word of `width` bytes, 4 or 8, in a peer's region:
    /// `FI_ATOMIC_READ`. Its result is the word.
    ///
    /// # Errors
    /// As for [`Endpoint::change`].
    pub fn load_word(&mut self, peer: Peer, word: RemoteKey, offset: u64, width: usize, tag: u64) -> Result<bool> {
        self.on_word(peer, word, (offset, width), AtomicKind::Read, Work::Load(width), tag)
    }

    fn on_word(
        &mut self,
        peer: Peer,
        word: RemoteKey,
        (offset, width): (u64, usize),
        kind: AtomicKind,
        work: Work<'_>,
        tag: u64,
    ) -> Result<bool> {
        let misaligned = OfiError::Misaligned { key: word.key, offset, width };
        let words = match width {
            4 => WordKind::U32,
            8 => WordKind::U64,
            _ => return Err(misaligned),
        };
        if !offset.is_multiple_of(width as u64) {
            return Err(misaligned);
        }
        if !self.atomics.has(words, kind, true) {
            return Err(OfiError::NoAtomic { provider: self.name.provider.clone(), kind, width });
        }
        let remote = self.remote(peer, word.key, word.address(offset, width)?)?;
        Ok(self.raw.post(work, Holds::Slot, remote, tag))
    }
}
