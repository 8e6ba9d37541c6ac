//! The libfabric calls that post operations.

use super::{Bytes, Remote, sys};
use crate::{
    Amo,
    atomics::{AtomicKind, operation},
};
use std::{ffi::c_void, ptr};

/// Offsets of the operand, the comparand and the result of an atomic in its slot.
pub(super) const WORDS: [usize; 3] = [0, 8, 16];
/// The flags of all posts that take flags.
const FLAGS: u64 = sys::FI_COMPLETION as u64;

/// The arguments of an operation's call.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) endpoint: *mut sys::fid_ep,
    pub(super) peer: sys::fi_addr_t,
    pub(super) start: *mut u8,
    pub(super) len: usize,
    pub(super) descriptor: *mut c_void,
    pub(super) note: *mut c_void,
    /// Whether a put completes when its bytes are visible.
    pub(super) delivery: bool,
}

impl Call {
    /// # Safety
    /// If `bytes` are to be copied, no other code uses that number of bytes at `start`.
    unsafe fn fill(self, bytes: Bytes<'_>) {
        let Bytes::Copied(pieces) = bytes else { return };
        let mut to = self.start;
        for piece in pieces {
            // SAFETY: guaranteed by the caller; the sum of the lengths is at most that of the
            // bytes.
            unsafe {
                ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len());
                to = to.add(piece.len());
            }
        }
    }

    /// # Safety
    /// As for [`Call::fill`]; and the memory that the call uses is held until the operation
    /// completes.
    pub(super) unsafe fn send(self, bytes: Bytes<'_>) -> (&'static str, isize) {
        let Self { endpoint, peer, start, len, descriptor, note, .. } = self;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.fill(bytes);
            ("fi_send", sys::fi_send(endpoint, start.cast(), len, descriptor, peer, note))
        }
    }

    /// # Safety
    /// As for [`Call::send`].
    pub(super) unsafe fn put(self, bytes: Bytes<'_>, data: Option<u64>, remote: Remote) -> (&'static str, isize) {
        let mut descriptor = self.descriptor;
        let own = sys::iovec { iov_base: self.start.cast(), iov_len: self.len };
        let theirs = sys::fi_rma_iov { addr: remote.address, len: self.len, key: remote.key };
        let message = sys::fi_msg_rma {
            msg_iov: &own,
            desc: &mut descriptor,
            iov_count: 1,
            addr: self.peer,
            rma_iov: &theirs,
            rma_iov_count: 1,
            context: self.note,
            data: data.unwrap_or(0),
        };
        let tells = if data.is_some() { u64::from(sys::FI_REMOTE_CQ_DATA) } else { 0 };
        // SAFETY: guaranteed by the caller; the lists are only read during the call.
        unsafe {
            self.fill(bytes);
            // An empty put is visible immediately; and `shm` of 1.17 never completes one with this
            // flag.
            let level = match self.delivery {
                _ if self.len == 0 => 0,
                true => sys::FI_DELIVERY_COMPLETE,
                false => sys::FI_TRANSMIT_COMPLETE,
            };
            let flags = FLAGS | tells | u64::from(level);
            ("fi_writemsg", sys::fi_writemsg(self.endpoint, &message, flags))
        }
    }

    /// # Safety
    /// As for [`Call::send`]; the bytes may be memory that other processes write at any time.
    pub(super) unsafe fn get(self, Remote { address, key, .. }: Remote) -> (&'static str, isize) {
        let Self { endpoint, peer, start, len, descriptor, note, .. } = self;
        // SAFETY: guaranteed by the caller.
        ("fi_read", unsafe { sys::fi_read(endpoint, start.cast(), len, descriptor, peer, address, key, note) })
    }

    /// # Safety
    /// As for [`Call::send`], of three words.
    pub(super) unsafe fn change(self, amo: Amo<u64>, width: usize, remote: Remote) -> (&'static str, isize) {
        let (value, expected) = match amo {
            Amo::CompareSwap { expected, new } => (new, expected),
            Amo::Add(value) | Amo::Swap(value) | Amo::Or(value) | Amo::And(value) | Amo::Xor(value) => (value, 0),
        };
        let kind = AtomicKind::of(amo);
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.set_words(width, value, expected);
            match kind {
                AtomicKind::CompareSwap => self.compare(width, remote),
                _ => self.fetch(kind, width, remote),
            }
        }
    }

    /// # Safety
    /// As for [`Call::change`].
    pub(super) unsafe fn load(self, width: usize, remote: Remote) -> (&'static str, isize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.set_words(width, 0, 0);
            self.fetch(AtomicKind::Read, width, remote)
        }
    }

    /// Returns the addresses of the operand, the comparand and the result of an atomic.
    fn words(self) -> [*mut c_void; 3] {
        WORDS.map(|offset| self.start.wrapping_add(offset).cast())
    }

    /// Sets operand and comparand, and clears the result.
    ///
    /// # Safety
    /// As for [`Call::change`].
    unsafe fn set_words(self, width: usize, operand: u64, comparand: u64) {
        for (word, bits) in self.words().into_iter().zip([operand, comparand, 0]) {
            // SAFETY: guaranteed by the caller; the words are aligned, as slots are.
            unsafe { if width == 4 { word.cast::<u32>().write(bits as u32) } else { word.cast::<u64>().write(bits) } }
        }
    }

    /// # Safety
    /// As for [`Call::change`]; the words are set.
    unsafe fn compare(self, width: usize, Remote { address, key, .. }: Remote) -> (&'static str, isize) {
        let [operand, comparand, old] = self.words();
        let Self { endpoint, peer, descriptor, note, .. } = self;
        // SAFETY: guaranteed by the caller.
        let returned = unsafe {
            sys::fi_compare_atomic(
                endpoint,
                operand,
                1,
                descriptor,
                comparand,
                descriptor,
                old,
                descriptor,
                peer,
                address,
                key,
                datatype(width),
                operation(AtomicKind::CompareSwap),
                note,
            )
        };
        ("fi_compare_atomic", returned)
    }

    /// # Safety
    /// As for [`Call::change`]; the words are set.
    unsafe fn fetch(
        self,
        kind: AtomicKind,
        width: usize,
        Remote { address, key, .. }: Remote,
    ) -> (&'static str, isize) {
        let [operand, _, old] = self.words();
        let Self { endpoint, peer, descriptor, note, .. } = self;
        // SAFETY: guaranteed by the caller.
        let returned = unsafe {
            sys::fi_fetch_atomic(
                endpoint,
                operand,
                1,
                descriptor,
                old,
                descriptor,
                peer,
                address,
                key,
                datatype(width),
                operation(kind),
                note,
            )
        };
        ("fi_fetch_atomic", returned)
    }
}

/// Returns libfabric's number for words of 4 or 8 bytes.
fn datatype(width: usize) -> sys::fi_datatype {
    if width == 4 { sys::FI_UINT32 } else { sys::FI_UINT64 }
}

/// Returns the value of the word before an atomic.
///
/// # Safety
/// The operation in the slot whose bytes start there has completed.
pub(super) unsafe fn found(start: *mut u8, width: usize) -> u64 {
    let old = start.wrapping_add(WORDS[2]);
    // SAFETY: the word is in the slot, which is not in use, as guaranteed by the caller.
    unsafe { if width == 4 { old.cast::<u32>().read().into() } else { old.cast::<u64>().read() } }
}
