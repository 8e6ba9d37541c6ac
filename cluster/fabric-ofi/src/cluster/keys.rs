//! The keys of the registered pieces of other ranks' heaps.
//!
//! A rank's contact data contains the keys of all pieces that are registered at that time. The
//! answer to the lookup of a region contains the keys of its pieces, and so does a command whose
//! bytes stay with its sender. Keys are valid for the endpoint with the door that precedes them:
//! those of an endpoint that has been reopened since are ignored, because the contact data of the
//! new endpoint contains their successors.

use crate::RemoteKey;
use std::collections::HashMap;

/// A registered piece of a rank's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemotePiece {
    /// Offset of its first byte in the heap.
    start: u64,
    pub(super) key: RemoteKey,
}

impl RemotePiece {
    const BYTES: usize = 8 + RemoteKey::BYTES;

    pub(super) fn new(start: u64, key: RemoteKey) -> Self {
        RemotePiece { start, key }
    }

    /// Returns the offset in the piece of a byte of the heap.
    pub(super) fn offset(&self, at: u64) -> u64 {
        at.saturating_sub(self.start)
    }

    /// Returns the number of bytes of the piece from this byte of the heap on.
    pub(super) fn rest(&self, at: u64) -> usize {
        self.key.size().saturating_sub(self.offset(at)) as usize
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..].copy_from_slice(&self.key.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (start, key) = bytes.split_first_chunk()?;
        let (start, key) = (u64::from_le_bytes(*start), RemoteKey::from_bytes(key).ok()?);
        Some(RemotePiece { start, key })
    }
}

/// Keys of a rank's pieces, and the door of the endpoint that they are valid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RankKeys {
    pub(super) door: u64,
    /// Sorted by their starts.
    pieces: Vec<RemotePiece>,
}

impl RankKeys {
    /// `pieces` are sorted by their starts.
    pub(super) fn new(door: u64, pieces: Vec<RemotePiece>) -> Self {
        RankKeys { door, pieces }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().flat_map(|piece| piece.to_bytes());
        self.door.to_le_bytes().into_iter().chain(pieces).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (door, pieces) = bytes.split_first_chunk()?;
        let (pieces, []) = pieces.as_chunks() else { return None };
        let pieces = pieces.iter().map(RemotePiece::from_bytes).collect::<Option<Vec<_>>>()?;
        Some(RankKeys { door: u64::from_le_bytes(*door), pieces })
    }

    fn piece(&self, at: u64) -> Option<RemotePiece> {
        let next = self.pieces.partition_point(|piece| piece.start <= at);
        self.pieces.get(next.checked_sub(1)?).filter(|piece| piece.rest(at) > 0).copied()
    }

    fn add(&mut self, piece: RemotePiece) {
        match self.pieces.binary_search_by_key(&piece.start, |piece| piece.start) {
            Ok(known) => self.pieces[known] = piece,
            Err(next) => self.pieces.insert(next, piece),
        }
    }
}

/// The keys of all ranks that have contact data.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: HashMap<u32, RankKeys>,
    /// Keys of ranks whose contact data is not known yet: they received that of this rank earlier.
    early: Vec<(u32, RankKeys)>,
}

impl Keys {
    /// Removes all keys, because the endpoints are being reopened.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Sets the keys in the contact data of all ranks.
    pub(super) fn set(&mut self, ranks: impl IntoIterator<Item = (u32, RankKeys)>) {
        self.known = ranks.into_iter().collect();
        core::mem::take(&mut self.early).into_iter().for_each(|(rank, keys)| self.learn(rank, keys));
    }

    /// Returns the door of a rank's endpoint.
    pub(super) fn door(&self, rank: u32) -> Option<u64> {
        self.known.get(&rank).map(|keys| keys.door)
    }

    /// Returns the piece that contains a byte of a rank's heap, if its key is known.
    pub(super) fn piece(&self, rank: u32, at: u64) -> Option<RemotePiece> {
        self.known.get(&rank)?.piece(at)
    }

    /// Adds the keys in a message of a rank, unless they are those of a closed endpoint.
    pub(super) fn learn(&mut self, rank: u32, keys: RankKeys) {
        match self.known.get_mut(&rank) {
            None => self.early.push((rank, keys)),
            Some(known) if known.door == keys.door => keys.pieces.into_iter().for_each(|piece| known.add(piece)),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, key: u64) -> RemotePiece {
        RemotePiece::new(start, RemoteKey { key, base: 1 << 40, len: 64 })
    }

    #[test]
    fn bytes_lead_back() {
        for pieces in [vec![], vec![piece(0, 7), piece(128, 9)]] {
            let keys = RankKeys::new(3, pieces);
            assert_eq!(RankKeys::from_bytes(&keys.to_bytes()), Some(keys.clone()));
            assert_eq!(RankKeys::from_bytes(&keys.to_bytes()[1..]), None);
        }
    }

    #[test]
    fn a_byte_outside_the_known_pieces_has_no_key() {
        let mut keys = Keys::default();
        keys.set([(1, RankKeys::new(3, vec![piece(64, 7)]))]);
        keys.learn(1, RankKeys::new(3, vec![piece(256, 8)]));
        let key = |at| keys.piece(1, at).map(|piece| (piece.key.key, piece.offset(at), piece.rest(at)));
        assert_eq!([63, 128, 320].map(key), [None; 3]);
        assert_eq!([64, 127, 257].map(key), [Some((7, 0, 64)), Some((7, 63, 1)), Some((8, 1, 63))]);
        assert!(keys.piece(2, 64).is_none() && keys.door(2).is_none());
    }

    #[test]
    fn keys_of_a_closed_endpoint_are_ignored() {
        let mut keys = Keys::default();
        keys.set([(1, RankKeys::new(4, vec![piece(0, 8)]))]);
        keys.learn(1, RankKeys::new(3, vec![piece(0, 7)]));
        assert_eq!(keys.piece(1, 0), Some(piece(0, 8)));
        keys.learn(1, RankKeys::new(4, vec![piece(0, 9)]));
        assert_eq!((keys.piece(1, 0), keys.door(1)), (Some(piece(0, 9)), Some(4)));
    }

    #[test]
    fn keys_that_precede_the_contact_data_are_kept() {
        let mut keys = Keys::default();
        keys.set([(1, RankKeys::new(4, vec![piece(0, 8)]))]);
        keys.clear();
        keys.learn(1, RankKeys::new(4, vec![piece(64, 8)]));
        keys.learn(1, RankKeys::new(5, vec![piece(64, 9)]));
        keys.set([(1, RankKeys::new(5, vec![]))]);
        assert_eq!((keys.piece(1, 64), keys.piece(1, 0)), (Some(piece(64, 9)), None));
    }
}
