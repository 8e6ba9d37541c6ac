//! Posting operations.
//!
//! An operation reads and writes the bytes of its slot, a buffer of the pool or a span of a region.
//! Its slot holds this memory from a successful post until the operation completes. During that
//! time, only libfabric uses the slot's bytes and the buffer.

use super::{
    Endpoint, Failed, Registration, Span,
    call::{Call, WORDS},
    endpoint::{Noted, SLOT},
    sys, text_of,
};
use crate::{Amo, Peer, error::Reply, event::Failure};
use std::sync::Arc;

/// Accepts messages from any peer: libfabric's `FI_ADDR_UNSPEC`.
const ANYBODY: sys::fi_addr_t = sys::fi_addr_t::MAX;
/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    /// Sends the bytes of the slot or the buffer to a peer as a message.
    Send(Bytes<'a>),
    /// Writes bytes to memory of a peer, which also receives the data if there are any.
    Put(Bytes<'a>, Option<u64>),
    /// Reads bytes from memory of a peer.
    Get(usize),
    /// Changes a word of 4 or 8 bytes.
    Change(Amo<u64>, usize),
    /// Loads such a word atomically.
    Load(usize),
}

/// The bytes that an operation sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes<'a> {
    /// These slices, in order, are copied to the memory that the operation holds.
    Copied(&'a [&'a [u8]]),
    /// This number of bytes of the memory that the operation holds.
    Held(usize),
}

impl Bytes<'_> {
    /// Returns the number of bytes; saturates on overflow.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Copied(pieces) => pieces.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece.len())),
            Self::Held(len) => *len,
        }
    }
}

/// Memory of a peer; a message needs only the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) peer: Peer,
    /// As counted by the provider: from the region's start, or in the peer's address space.
    pub(crate) address: u64,
    pub(crate) key: u64,
}

/// The memory of an operation.
#[derive(Debug)]
pub(crate) enum Holds {
    /// The bytes of its slot.
    Slot,
    /// A buffer of the pool.
    Buffer(Arc<Registration>),
    /// Bytes of a region.
    Span(Span),
}

/// The kind of an operation's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brings {
    Nothing,
    Bytes,
    Word(usize),
}

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) call: &'static str,
    pub(super) peer: Peer,
    pub(super) tag: u64,
    pub(super) len: usize,
    pub(super) brings: Brings,
    pub(super) holds: Holds,
}

impl Endpoint {
    /// Returns memory for an operation with `len` additional bytes, in a buffer that `make` creates
    /// if a new one is needed; `None` if there is currently no room.
    pub(crate) fn room<E>(
        &mut self,
        len: usize,
        make: impl FnOnce(usize) -> Result<Arc<Registration>, E>,
    ) -> Result<Option<Holds>, E> {
        if self.used.slots.vacancy().is_none() {
            return Ok(None);
        }
        if len <= SLOT {
            return Ok(Some(Holds::Slot));
        }
        Ok(self.used.pool.take(len, make)?.map(Holds::Buffer))
    }

    /// Posts an operation, whose memory has room for its bytes; returns whether there was room for
    /// the operation. Its memory is held until it completes. An operation that the provider refuses
    /// completes with an error.
    pub(crate) fn post(&mut self, work: Work<'_>, holds: Holds, remote: Remote, tag: u64) -> bool {
        let len = match &work {
            Work::Send(bytes) | Work::Put(bytes, _) => bytes.len(),
            Work::Get(len) => *len,
            Work::Change(..) | Work::Load(_) => WORDS.len() * 8,
        };
        let Some(slot) = self.used.slots.vacancy() else {
            self.free(len, holds);
            return false;
        };
        let (start, room, registration) = match &holds {
            Holds::Slot => (self.used.bytes_of(Noted::Slot(slot)), SLOT, &self.used.memory),
            Holds::Buffer(buffer) => (buffer.as_ptr(), buffer.len(), buffer),
            Holds::Span(span) => (span.as_ptr(), span.len(), span.registration()),
        };
        let copies = match work {
            Work::Send(bytes) | Work::Put(bytes, _) => matches!(bytes, Bytes::Copied(_)),
            Work::Get(_) => false,
            Work::Change(..) | Work::Load(_) => true,
        };
        let shared = matches!(holds, Holds::Span(_));
        let known = self.addresses.get(remote.peer.index).copied();
        let Some(peer) = known.filter(|_| len <= room && !(copies && shared)) else {
            self.free(len, holds);
            return self.refuse(Failed { call: "post", code: sys::FI_EINVAL as i32 }, remote.peer, tag);
        };
        let (endpoint, note) = (self.objects.endpoint(), self.used.note(Noted::Slot(slot)));
        let (descriptor, delivery) = (registration.descriptor(), self.delivery);
        let call = Call { endpoint, peer, start, len, descriptor, note, delivery };
        // SAFETY: the endpoint is open and the peer in its vector; `len` registered bytes are at
        // `start`, which the slot holds from the success of the call until the operation completes;
        // the slot is free, so its context is too. Bytes are copied only to the slot or to a buffer
        // that only this operation has, not to a region.
        let (name, returned) = unsafe {
            match &work {
                Work::Send(bytes) => call.send(*bytes),
                Work::Put(bytes, data) => call.put(*bytes, *data, remote),
                Work::Get(_) => call.get(remote),
                Work::Change(amo, width) => call.change(*amo, *width, remote),
                Work::Load(width) => call.load(*width, remote),
            }
        };
        match Failed::check(name, returned as i64) {
            Ok(()) => {
                let brings = match work {
                    Work::Get(_) if !shared => Brings::Bytes,
                    Work::Change(_, width) | Work::Load(width) => Brings::Word(width),
                    _ => Brings::Nothing,
                };
                self.used.slots.start(Held { call: name, peer: remote.peer, tag, len, brings, holds });
                true
            }
            Err(failed) => {
                self.free(len, holds);
                !failed.is_for_now() && self.refuse(failed, remote.peer, tag)
            }
        }
    }

    /// Stores a refused operation, to be reported by the next call of `progress`; returns whether
    /// there is room for it.
    fn refuse(&mut self, failed: Failed, peer: Peer, tag: u64) -> bool {
        let Failed { call, code } = failed;
        let room = self.refused.len() < self.used.slots.len();
        if room {
            let reply = Reply { code, text: text_of(code), provider_code: 0, provider: None };
            self.refused.push_back((tag, Failure { call, peer, reply }));
        }
        room
    }

    /// Takes back the memory of an operation that has completed, or was not posted.
    pub(super) fn free(&mut self, len: usize, holds: Holds) {
        if let Holds::Buffer(buffer) = holds {
            self.used.pool.put_back(len, buffer);
        }
    }

    /// Posts all buffers for messages that are not posted.
    pub(super) fn post_receives(&mut self) -> Result<(), Failed> {
        while let Some(buffer) = self.unposted.last().copied() {
            let (endpoint, len) = (self.objects.endpoint(), self.used.sizes.message.max(1));
            let (start, note) = (self.used.bytes_of(Noted::Receive(buffer)), self.used.note(Noted::Receive(buffer)));
            // SAFETY: the endpoint is open; the buffer is registered and not used until the message
            // has arrived, and neither is its context.
            let returned =
                unsafe { sys::fi_recv(endpoint, start.cast(), len, self.used.memory.descriptor(), ANYBODY, note) };
            match Failed::check("fi_recv", returned as i64) {
                Ok(()) => self.unposted.pop(),
                Err(failed) if failed.is_for_now() => return Ok(()),
                Err(failed) => return Err(failed),
            };
        }
        Ok(())
    }
}
