//! Posting operations.

use super::{Endpoint, Failed, Registration, Span, endpoint::Used, sys};
use crate::table::Token;
use rdma_fabric::Amo;
use std::sync::Arc;

/// What is done to memory of a peer.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// The bytes go to the peer, and tell it the data if there are any.
    Put { from: Span, data: Option<u64> },
    /// The bytes come from the peer.
    Get { into: Span },
    /// A word of 8 bytes is changed.
    Change(Amo<u64>),
}

/// Which memory of which peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) peer: usize,
    /// As the provider counts: from the region's start, or in the peer's address space.
    pub(crate) address: u64,
    pub(crate) key: u64,
}

/// An operation under way: all memory that it uses, and where it goes.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) call: &'static str,
    pub(crate) remote: Remote,
    own: Option<Span>,
    words: Option<Arc<Registration>>,
}

impl Held {
    /// Returns the memory that libfabric may read or write for it.
    pub(super) fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.own.as_ref().map(Span::registration).into_iter().chain(&self.words).map(Arc::as_ref)
    }

    /// Returns whether it brings a word.
    pub(super) fn brings_a_word(&self) -> bool {
        self.words.is_some()
    }
}

/// How many bytes the words of a slot take.
pub(super) const WORDS: usize = 24;

/// Where the words of a slot stand in the endpoint's memory for them.
pub(super) const fn operand(slot: usize) -> usize {
    slot * WORDS
}

pub(super) const fn comparand(slot: usize) -> usize {
    slot * WORDS + 8
}

pub(super) const fn before(slot: usize) -> usize {
    slot * WORDS + 16
}

impl Endpoint {
    /// Posts an operation; none if all slots are taken. What it uses is held until it is over.
    pub(crate) fn post(&mut self, work: &Work, remote: Remote) -> Result<Option<Token>, Failed> {
        let endpoint = self.as_ptr();
        let Some(peer) = self.addresses.get(remote.peer).copied() else {
            return Err(Failed { call: "post", code: sys::FI_EINVAL as i32 });
        };
        let used = self.used();
        let Some(slot) = used.table.vacancy() else { return Ok(None) };
        let (call, returned) = match work {
            Work::Put { from, data } => used.put(endpoint, slot, from, *data, peer, remote),
            Work::Get { into } => used.get(endpoint, slot, into, peer, remote),
            Work::Change(change) => used.change(endpoint, slot, *change, peer, remote),
        };
        Failed::check(call, returned as i64)?;
        let (own, words) = match work {
            Work::Put { from: own, .. } | Work::Get { into: own } => (Some(own.clone()), None),
            Work::Change(_) => (None, Some(used.words.clone())),
        };
        Ok(used.table.start(Held { call, remote, own, words }))
    }
}

impl Used {
    fn put(
        &self,
        endpoint: *mut sys::fid_ep,
        slot: usize,
        from: &Span,
        data: Option<u64>,
        peer: sys::fi_addr_t,
        Remote { address, key, .. }: Remote,
    ) -> (&'static str, isize) {
        let (start, len, context) = (from.as_ptr(), from.len(), self.context(slot));
        let descriptor = from.registration().descriptor();
        // SAFETY: the endpoint is open and the peer in its vector; the bytes are registered, and
        // held by the slot from the success of the call until the operation is over; the slot is
        // free, so its context is too.
        unsafe {
            match data {
                None => ("fi_write", sys::fi_write(endpoint, start, len, descriptor, peer, address, key, context)),
                Some(data) => (
                    "fi_writedata",
                    sys::fi_writedata(endpoint, start, len, descriptor, data, peer, address, key, context),
                ),
            }
        }
    }

    fn get(
        &self,
        endpoint: *mut sys::fid_ep,
        slot: usize,
        into: &Span,
        peer: sys::fi_addr_t,
        Remote { address, key, .. }: Remote,
    ) -> (&'static str, isize) {
        let (start, len, context) = (into.as_ptr(), into.len(), self.context(slot));
        let descriptor = into.registration().descriptor();
        // SAFETY: as in `put`; the bytes are memory that others may write at any time.
        ("fi_read", unsafe { sys::fi_read(endpoint, start, len, descriptor, peer, address, key, context) })
    }

    fn change(
        &self,
        endpoint: *mut sys::fid_ep,
        slot: usize,
        change: Amo<u64>,
        peer: sys::fi_addr_t,
        Remote { address, key, .. }: Remote,
    ) -> (&'static str, isize) {
        let (operation, value, expected) = match change {
            Amo::Add(value) => (sys::FI_SUM, value, 0),
            Amo::Swap(value) => (sys::FI_ATOMIC_WRITE, value, 0),
            Amo::CompareSwap { expected, new } => (sys::FI_CSWAP, new, expected),
            Amo::Or(value) => (sys::FI_BOR, value, 0),
            Amo::And(value) => (sys::FI_BAND, value, 0),
            Amo::Xor(value) => (sys::FI_BXOR, value, 0),
        };
        self.words.store(operand(slot), value);
        self.words.store(comparand(slot), expected);
        let word = |offset: usize| (self.words.address() as usize as *mut u8).wrapping_add(offset).cast();
        let (value, expected, old) = (word(operand(slot)), word(comparand(slot)), word(before(slot)));
        let (descriptor, context) = (self.words.descriptor(), self.context(slot));
        // SAFETY: as in `put`: the words are registered, three for each slot, and held by it.
        unsafe {
            if operation == sys::FI_CSWAP {
                let returned = sys::fi_compare_atomic(
                    endpoint,
                    value,
                    1,
                    descriptor,
                    expected,
                    descriptor,
                    old,
                    descriptor,
                    peer,
                    address,
                    key,
                    sys::FI_UINT64,
                    operation,
                    context,
                );
                ("fi_compare_atomic", returned)
            } else {
                let returned = sys::fi_fetch_atomic(
                    endpoint,
                    value,
                    1,
                    descriptor,
                    old,
                    descriptor,
                    peer,
                    address,
                    key,
                    sys::FI_UINT64,
                    operation,
                    context,
                );
                ("fi_fetch_atomic", returned)
            }
        }
    }
}
