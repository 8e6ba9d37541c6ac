//! Endpoints: their objects, and all memory that libfabric may use until they are closed.

use super::{
    Domain, Failed, Memory, Registration,
    objects::Objects,
    post::{Held, Holds},
    queue::Batch,
    sys,
};
use crate::{Atomics, atomics, event::Failure, pool::Pool, slots::Slots};
use std::{
    collections::VecDeque,
    mem::{ManuallyDrop, size_of},
    os::fd::BorrowedFd,
    sync::Arc,
};

/// Number of bytes of a slot; operations with more bytes use buffers of the pool.
pub(super) const SLOT: usize = 256;
/// Number of bytes of a provider's context for an operation.
const CONTEXT: usize = size_of::<sys::fi_context2>();

/// The capacity of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Operations in flight.
    pub(crate) depth: usize,
    /// Buffers for messages.
    pub(crate) receives: usize,
    /// Bytes of such a buffer.
    pub(crate) message: usize,
}

impl Sizes {
    /// Returns the distance in bytes between the buffers for messages.
    fn stride(self) -> Option<usize> {
        self.message.max(1).checked_next_multiple_of(64)
    }

    /// Returns the number of bytes of slots and buffers together; `None` if it overflows.
    pub(crate) fn bytes(self) -> Option<usize> {
        self.receives.checked_mul(self.stride()?)?.checked_add(self.depth.checked_mul(SLOT)?)
    }

    /// Returns the number of bytes of all providers' contexts.
    pub(crate) fn notes(self) -> Option<usize> {
        self.depth.checked_add(self.receives)?.checked_mul(CONTEXT)
    }
}

/// The owner of a provider's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    Slot(usize),
    Receive(usize),
}

/// Memory that libfabric may use until the endpoint is closed.
#[derive(Debug)]
pub(super) struct Used {
    /// Operations in flight, and the memory that they hold.
    pub(super) slots: Slots<Held>,
    pub(super) pool: Pool<Arc<Registration>>,
    /// Providers' contexts: of the operation in each slot, then of each buffer for messages.
    notes: Memory,
    /// The bytes of each slot, then the buffers for messages. The endpoint is the only owner.
    pub(super) memory: Arc<Registration>,
    pub(super) sizes: Sizes,
    stride: usize,
}

impl Used {
    /// Returns the address of a provider's context.
    pub(super) fn note(&self, noted: Noted) -> *mut std::ffi::c_void {
        let index = match noted {
            Noted::Slot(slot) => slot,
            Noted::Receive(buffer) => self.slots.len() + buffer,
        };
        self.notes.as_ptr().wrapping_add(index * CONTEXT).cast()
    }

    /// Returns the owner of a context; `None` if the context is not from this endpoint.
    pub(super) fn noted(&self, note: *mut std::ffi::c_void) -> Option<Noted> {
        let offset = (note as usize).checked_sub(self.notes.as_ptr() as usize)?;
        let index = offset / CONTEXT;
        match index.checked_sub(self.slots.len()) {
            _ if !offset.is_multiple_of(CONTEXT) => None,
            None => Some(Noted::Slot(index)),
            Some(buffer) => (buffer < self.sizes.receives).then_some(Noted::Receive(buffer)),
        }
    }

    /// Returns the first of the [`SLOT`] bytes of a slot, or of the bytes of a buffer for messages.
    pub(super) fn bytes_of(&self, noted: Noted) -> *mut u8 {
        let offset = match noted {
            Noted::Slot(slot) => slot * SLOT,
            Noted::Receive(buffer) => self.slots.len() * SLOT + buffer * self.stride,
        };
        self.memory.as_ptr().wrapping_add(offset)
    }
}

/// An endpoint. It may be sent to another thread, but is used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) objects: ManuallyDrop<Objects>,
    pub(super) used: ManuallyDrop<Used>,
    /// The addresses of peers, as numbered by the provider.
    pub(super) addresses: Vec<sys::fi_addr_t>,
    /// Buffers for messages that are not posted.
    pub(super) unposted: Vec<usize>,
    /// Whether a put completes when its bytes are visible, not when they are acknowledged.
    pub(super) delivery: bool,
    pub(super) batch: Batch,
    /// Refused operations that have not been reported yet.
    pub(super) refused: VecDeque<(u64, Failure)>,
}

// SAFETY: the objects belong to this value, and may be used in any thread, by one at a time.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// Opens an endpoint that is ready to communicate and to receive.
    ///
    /// `notes` and `memory` have the lengths that result from `sizes`, and no other owner. With
    /// `wait`, the completion queue has a descriptor if the provider supports that; with `delivery`,
    /// puts complete when their bytes are visible.
    pub(crate) fn open(
        domain: &Arc<Domain>,
        sizes: Sizes,
        notes: Memory,
        memory: Arc<Registration>,
        (wait, delivery): (bool, bool),
    ) -> Result<Self, Failed> {
        let Some(stride) =
            sizes.stride().filter(|_| sizes.bytes() <= Some(memory.len()) && sizes.notes() <= Some(notes.len()))
        else {
            return Err(Failed { call: "open", code: sys::FI_EINVAL as i32 });
        };
        let objects = Objects::open(domain, wait)?;
        let used = Used { slots: Slots::new(sizes.depth), pool: Pool::new(), notes, memory, sizes, stride };
        let mut opened = Self {
            objects: ManuallyDrop::new(objects),
            used: ManuallyDrop::new(used),
            addresses: Vec::new(),
            unposted: (0..sizes.receives).rev().collect(),
            delivery,
            batch: Batch::default(),
            refused: VecDeque::new(),
        };
        opened.post_receives()?;
        Ok(opened)
    }

    /// Returns the address of the endpoint, in the form of its offer.
    pub(crate) fn name(&self) -> Result<Vec<u8>, Failed> {
        self.objects.name()
    }

    /// Adds a peer, and returns its number.
    ///
    /// The caller has compared the address with the endpoint's own: format and length are the same.
    pub(crate) fn insert(&mut self, address: &[u8]) -> Result<usize, Failed> {
        let made = self.objects.insert(address)?;
        self.addresses.push(made);
        Ok(self.addresses.len() - 1)
    }

    /// Returns the descriptor of the completion queue, if it has one.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.objects.descriptor()
    }

    /// Returns whether that descriptor wakes a thread that starts to sleep on it now.
    pub(crate) fn may_sleep(&self) -> Result<bool, Failed> {
        Ok(!self.batch.is_left() && self.refused.is_empty() && self.objects.may_sleep()?)
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        self.objects.domain()
    }

    /// Queries the provider for each atomic on each kind of word. The result is empty unless the
    /// endpoint's offer has atomics.
    pub(crate) fn atomics(&self) -> Atomics {
        if self.domain().info().facts().caps & u64::from(sys::FI_ATOMIC) == 0 {
            return Atomics::default();
        }
        let endpoint = self.objects.endpoint();
        let mut count = 0;
        Atomics::found(|word, kind, fetching| {
            let (datatype, operation) = (atomics::datatype(word), atomics::operation(kind));
            // SAFETY: the endpoint is open and was made from an offer with atomics, as checked
            // above, and its calls write one count.
            let answer = unsafe {
                match (kind, fetching) {
                    (atomics::AtomicKind::CompareSwap | atomics::AtomicKind::Read, false) => return false,
                    (atomics::AtomicKind::CompareSwap, true) => {
                        sys::fi_compare_atomicvalid(endpoint, datatype, operation, &mut count)
                    }
                    (_, false) => sys::fi_atomicvalid(endpoint, datatype, operation, &mut count),
                    (_, true) => sys::fi_fetch_atomicvalid(endpoint, datatype, operation, &mut count),
                }
            };
            answer == 0 && count > 0
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // A peer may still write to the destination of an operation, and no call reports when it is
        // done.
        for held in self.used.slots.held() {
            match &held.holds {
                Holds::Slot => self.used.memory.abandon(),
                Holds::Buffer(buffer) => buffer.abandon(),
                Holds::Span(span) => span.registration().abandon(),
            }
        }
        // SAFETY: the objects, and then the fields, are used for the last time, by their owner.
        unsafe {
            if self.objects.close() {
                ManuallyDrop::drop(&mut self.used);
                ManuallyDrop::drop(&mut self.objects);
            }
        }
    }
}
