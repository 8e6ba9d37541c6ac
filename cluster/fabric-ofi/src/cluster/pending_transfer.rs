//! The remaining part of a put or get that is moved in several transfers.

use super::{link::Link, written};
use crate::{GetInto, Peer, PutFrom, RemoteKey};
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

    /// Posts the first `len` bytes. Returns whether there was room.
    fn post(
        &self,
        link: &mut Link,
        (peer, key): (Peer, RemoteKey),
        at: u64,
        len: usize,
        id: u64,
    ) -> crate::Result<bool> {
        let (endpoint, heap) = (&mut link.endpoint, &link.heap);
        let front = |range: &Range<usize>| range.start..range.start + len;
        let told = written::encode(at, len, endpoint.limits().data);
        match self {
            What::Put(bytes, done) => {
                let from = PutFrom::Bytes(&bytes[*done..*done + len]);
                endpoint.put(peer, from, key, at, told, id)
            }
            What::PutOwn(range) => endpoint.put(peer, PutFrom::Region(heap, front(range)), key, at, told, id),
            What::Get(_) => endpoint.get(peer, GetInto::Own(len), key, at, id),
            What::GetInto(range) => endpoint.get(peer, GetInto::Region(heap, front(range)), key, at, id),
        }
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

    /// Posts as many bytes as fit in one transfer, and removes them. Returns whether there was
    /// room.
    pub(super) fn post(&mut self, link: &mut Link, peer: (Peer, RemoteKey), id: u64) -> crate::Result<bool> {
        let len = self.what.len().min(link.longest);
        let posted = self.what.post(link, peer, self.at, len, id)?;
        if posted {
            self.at += len as u64;
            self.what.skip(len);
        }
        Ok(posted)
    }
}
