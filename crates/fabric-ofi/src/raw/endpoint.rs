//! Endpoints: each with its own completion queue, address vector and operations under way.

use super::{
    Domain, Failed, Registration, close,
    memory::Memory,
    post::{Held, WORDS},
    queue::{Arrival, Outcome},
    sys,
};
use crate::table::Table;
use std::{
    collections::VecDeque,
    io,
    mem::{ManuallyDrop, size_of},
    ptr::{NonNull, null_mut},
    sync::Arc,
};

/// The longest address of an endpoint, in bytes.
pub(crate) const LONGEST_ADDRESS: usize = 256;
/// Most operations that an endpoint has under way.
const DEEPEST: usize = 1024;
/// Entries of a completion queue: notices of peers come in faster than they are read.
const QUEUE: usize = 1 << 14;

/// Objects that are closed in the order of their fields: the endpoint before what it is bound to.
#[derive(Debug)]
struct Objects {
    endpoint: Option<NonNull<sys::fid_ep>>,
    queue: Option<NonNull<sys::fid_cq>>,
    peers: Option<NonNull<sys::fid_av>>,
}

impl Objects {
    /// Closes all that is open; returns whether the endpoint was closed.
    ///
    /// # Safety
    /// Nobody uses the objects afterwards.
    unsafe fn close(&mut self) -> bool {
        // SAFETY: each is open, is taken here, and what it is bound to is closed after it.
        unsafe {
            if !self.endpoint.take().is_none_or(|object| close(object.as_ptr().cast())) {
                return false;
            }
            self.queue.take().map(|object| close(object.as_ptr().cast()));
            self.peers.take().map(|object| close(object.as_ptr().cast()));
        }
        true
    }
}

/// What libfabric may use until the endpoint is closed.
#[derive(Debug)]
pub(super) struct Used {
    /// Operations under way, and what they hold.
    pub(super) table: Table<Held, Outcome>,
    /// For each slot of the table what a provider notes of its operation.
    contexts: Memory,
    /// For each slot three words: operand, comparand, and what was there before.
    pub(super) words: Arc<Registration>,
}

/// An endpoint. It may be sent to another thread, and is used by one at a time.
#[derive(Debug)]
pub(crate) struct Endpoint {
    objects: Objects,
    used: ManuallyDrop<Used>,
    /// The addresses of peers as the provider numbers them.
    pub(super) addresses: Vec<sys::fi_addr_t>,
    pub(super) arrivals: VecDeque<Arrival>,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: the objects belong to this value, and may be used in any thread, by one at a time.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// Opens an endpoint that is able to communicate.
    ///
    /// `words` is memory for words, as many bytes as [`Endpoint::bytes_for_words`] says, and nobody
    /// else's.
    pub(crate) fn open(domain: &Arc<Domain>, words: Arc<Registration>) -> Result<io::Result<Self>, Failed> {
        let depth = (words.len() / WORDS).min(Self::depth(domain));
        let contexts = Memory::new(depth * size_of::<sys::fi_context2>());
        let contexts = match contexts {
            Ok(contexts) => contexts,
            Err(error) => return Ok(Err(error)),
        };
        let mut opened = Self {
            objects: Objects { endpoint: None, queue: None, peers: None },
            used: ManuallyDrop::new(Used { table: Table::new(depth), contexts, words }),
            addresses: Vec::new(),
            arrivals: VecDeque::new(),
            domain: ManuallyDrop::new(domain.clone()),
        };
        opened.enable()?;
        Ok(Ok(opened))
    }

    /// Returns how many operations an endpoint may have under way.
    fn depth(domain: &Domain) -> usize {
        domain.info().facts().depth.clamp(1, DEEPEST)
    }

    /// Returns how many bytes the words of an endpoint's operations take.
    pub(crate) fn bytes_for_words(domain: &Domain) -> usize {
        Self::depth(domain) * WORDS
    }

    fn enable(&mut self) -> Result<(), Failed> {
        let domain = self.domain.as_ptr();
        let (mut queue, mut peers, mut endpoint) = (null_mut(), null_mut(), null_mut());
        // SAFETY: zeros are values of both structures; the domain and its offer are open as long as
        // the objects, which are noted at once, so that they are closed whatever fails.
        unsafe {
            let mut attr: sys::fi_cq_attr = std::mem::zeroed();
            attr.size = QUEUE;
            attr.format = sys::FI_CQ_FORMAT_DATA;
            attr.wait_obj = sys::FI_WAIT_NONE;
            let returned = sys::fi_cq_open(domain, &mut attr, &mut queue, null_mut());
            self.objects.queue = Some(Failed::object("fi_cq_open", returned, queue)?);

            let mut attr: sys::fi_av_attr = std::mem::zeroed();
            let returned = sys::fi_av_open(domain, &mut attr, &mut peers, null_mut());
            self.objects.peers = Some(Failed::object("fi_av_open", returned, peers)?);

            let returned = sys::fi_endpoint(domain, self.domain.info().as_ptr(), &mut endpoint, null_mut());
            self.objects.endpoint = Some(Failed::object("fi_endpoint", returned, endpoint)?);

            let both = u64::from(sys::FI_TRANSMIT | sys::FI_RECV);
            Failed::check("fi_ep_bind", sys::fi_ep_bind(endpoint, queue.cast(), both))?;
            Failed::check("fi_ep_bind", sys::fi_ep_bind(endpoint, peers.cast(), 0))?;
            Failed::check("fi_enable", sys::fi_enable(endpoint))
        }
    }

    /// Returns the endpoint's object, which is there since it was opened.
    pub(super) fn as_ptr(&self) -> *mut sys::fid_ep {
        self.objects.endpoint.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Returns the completion queue's object, which is there since the endpoint was opened.
    pub(super) fn queue(&self) -> *mut sys::fid_cq {
        self.objects.queue.map_or(null_mut(), NonNull::as_ptr)
    }

    pub(super) fn used(&mut self) -> &mut Used {
        &mut self.used
    }

    pub(crate) fn table(&self) -> &Table<Held, Outcome> {
        &self.used.table
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns the address of the endpoint, in the form of its offer.
    pub(crate) fn name(&self) -> Result<Vec<u8>, Failed> {
        let mut bytes = vec![0; LONGEST_ADDRESS];
        let mut len = bytes.len();
        // SAFETY: the endpoint is open, and the provider writes up to `len` bytes.
        let returned = unsafe { sys::fi_getname(self.as_ptr().cast(), bytes.as_mut_ptr().cast(), &mut len) };
        Failed::check("fi_getname", returned)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Adds a peer, and returns its number.
    ///
    /// The caller has compared the address with the endpoint's own: form and length are the same.
    pub(crate) fn insert(&mut self, address: &[u8]) -> Result<usize, Failed> {
        // Zeros behind it, for addresses that are texts, and the alignment of all forms.
        let mut words = [0_u64; LONGEST_ADDRESS / 8 + 1];
        for (to, from) in words.iter_mut().zip(address[..address.len().min(LONGEST_ADDRESS)].chunks(8)) {
            let mut word = [0; 8];
            word[..from.len()].copy_from_slice(from);
            *to = u64::from_ne_bytes(word);
        }
        let peers = self.objects.peers.map_or(null_mut(), NonNull::as_ptr);
        let mut made = 0;
        // SAFETY: the vector is open; the buffer is longer than any address of libfabric, ends with
        // zeros, and is only read during the call.
        let returned = unsafe { sys::fi_av_insert(peers, words.as_ptr().cast(), 1, &mut made, 0, null_mut()) };
        Failed::check("fi_av_insert", returned)?;
        if returned != 1 {
            return Err(Failed { call: "fi_av_insert", code: sys::FI_EINVAL as i32 });
        }
        self.addresses.push(made);
        Ok(self.addresses.len() - 1)
    }
}

impl Used {
    /// Returns where a provider notes what it likes of the operation in a slot.
    pub(super) fn context(&self, slot: usize) -> *mut std::ffi::c_void {
        self.contexts.as_ptr().wrapping_add(slot * size_of::<sys::fi_context2>()).cast()
    }

    /// Returns the slot that a context belongs to, if it is one of these.
    pub(super) fn slot(&self, context: *mut std::ffi::c_void) -> Option<usize> {
        let offset = (context as usize).checked_sub(self.contexts.as_ptr() as usize)?;
        let slot = offset / size_of::<sys::fi_context2>();
        (offset.is_multiple_of(size_of::<sys::fi_context2>()) && slot < self.table.len()).then_some(slot)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // A peer may be about to write what an operation waits for, and no call says when it has.
        self.used.table.held().flat_map(Held::registrations).for_each(Registration::abandon);
        // SAFETY: the objects, and then the fields, are used for the last time, by the value's
        // owner.
        unsafe {
            if self.objects.close() {
                ManuallyDrop::drop(&mut self.used);
                ManuallyDrop::drop(&mut self.domain);
            }
        }
    }
}
