//! The remaining part of a put or get that is moved in several transfers.

use super::{keys::RemotePiece, link::Link, written};
use crate::{GetInto, OfiError, Peer, PutFrom};
use core::ops::Range;

/// The remaining part of a put or get.
#[derive(Debug)]
pub(super) struct PendingTransfer {
    /// Offset in the heap of the other rank.
    at: u64,
    what: What,
}

/// The bytes to move.
#[derive(Debug)]
pub(super) enum What {
    /// The bytes of the vector from this index on.
    Put(Vec<u8>, usize),
    PutOwn(Range<usize>),
    Get(usize),
    GetInto(Range<usize>),
}

impl What {
    fn len(&self) -> usize {
        match self {
            What::Put(bytes, done) => bytes.len() - done,
            What::PutOwn(range) | What::GetInto(range) => range.len(),
            What::Get(len) => *len,
        }
    }

    /// Posts as many of its bytes as one transfer to or from the byte `at` of the piece can move.
    /// Returns their number, 0 if there is no room.
    fn post(&self, link: &mut Link, (peer, piece): (Peer, RemotePiece), at: u64, id: u64) -> crate::Result<usize> {
        let most = self.len().min(link.longest).min(piece.rest(at));
        let (to, key) = (piece.offset(at), piece.key);
        let data = link.endpoint.limits().data;
        let endpoint = &mut link.endpoint;
        let (len, posted) = match self {
            What::Put(bytes, done) => {
                let from = PutFrom::Bytes(&bytes[*done..*done + most]);
                (most, endpoint.put(peer, from, key, to, written::encode(at, most, data), id)?)
            }
            What::Get(_) => (most, endpoint.get(peer, GetInto::Own(most), key, to, id)?),
            What::PutOwn(range) | What::GetInto(range) => {
                let (start, own) = link.heap.piece(range.start).ok_or(OfiError::Foreign { what: "region" })?;
                let first = range.start - start;
                let len = most.min(own.size() - first);
                let here = first..first + len;
                let posted = match self {
                    What::GetInto(_) => endpoint.get(peer, GetInto::Region(&own, here), key, to, id)?,
                    _ => {
                        let from = PutFrom::Region(&own, here);
                        endpoint.put(peer, from, key, to, written::encode(at, len, data), id)?
                    }
                };
                (len, posted)
            }
        };
        Ok(if posted { len } else { 0 })
    }

    fn skip(&mut self, len: usize) {
        match self {
            What::Put(_, done) => *done += len,
            What::PutOwn(range) | What::GetInto(range) => range.start += len,
            What::Get(left) => *left -= len,
        }
    }
}

impl PendingTransfer {
    pub(super) fn new(at: u64, what: What) -> Self {
        PendingTransfer { at, what }
    }

    /// Returns whether nothing remains.
    pub(super) fn is_empty(&self) -> bool {
        self.what.len() == 0
    }

    /// Returns the offset in the heap of the other rank of the first byte that remains.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Posts as many bytes as one transfer can move, and removes them. The piece is that of the
    /// first byte. Returns whether there was room.
    pub(super) fn post(&mut self, link: &mut Link, peer: (Peer, RemotePiece), id: u64) -> crate::Result<bool> {
        let posted = self.what.post(link, peer, self.at, id)?;
        self.at += posted as u64;
        self.what.skip(posted);
        Ok(posted > 0)
    }
}
