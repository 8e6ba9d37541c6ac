//! The objects of an endpoint: the endpoint itself, its completion queue and its address vector.

use super::{Domain, Failed, close, sys};
use std::{
    os::fd::{BorrowedFd, RawFd},
    ptr::{NonNull, null_mut},
    sync::Arc,
};

/// The longest address of an endpoint, in bytes.
pub(crate) const LONGEST_ADDRESS: usize = 256;
/// Number of entries of a completion queue: peers' notices may arrive faster than they are read.
const QUEUE: usize = 1 << 14;

/// Objects that are closed in the order of their fields: the endpoint before the objects that it is
/// bound to.
#[derive(Debug)]
pub(super) struct Objects {
    endpoint: Option<NonNull<sys::fid_ep>>,
    queue: Option<NonNull<sys::fid_cq>>,
    peers: Option<NonNull<sys::fid_av>>,
    descriptor: Option<RawFd>,
    domain: Arc<Domain>,
}

impl Objects {
    /// Opens an endpoint that is ready to communicate. With `wait`, its queue has a descriptor if
    /// the provider supports that.
    ///
    /// On failure, all objects opened so far are closed.
    pub(super) fn open(domain: &Arc<Domain>, wait: bool) -> Result<Self, Failed> {
        domain.endpoint_opens();
        let mut made = Self { endpoint: None, queue: None, peers: None, descriptor: None, domain: domain.clone() };
        match made.enable(wait) {
            Ok(()) => Ok(made),
            Err(failed) => {
                // SAFETY: none of its objects was handed out.
                unsafe { made.close() };
                Err(failed)
            }
        }
    }

    fn enable(&mut self, wait: bool) -> Result<(), Failed> {
        let domain = self.domain.as_ptr();
        let (mut peers, mut endpoint) = (null_mut(), null_mut());
        self.open_queue(wait)?;
        let queue = self.queue();
        // SAFETY: zeros are values of the structure; the domain and its offer are open as long as
        // the objects, which are stored immediately, so that they are closed on any failure.
        unsafe {
            let mut attr: sys::fi_av_attr = std::mem::zeroed();
            let returned = sys::fi_av_open(domain, &mut attr, &mut peers, null_mut());
            self.peers = Some(Failed::object("fi_av_open", returned, peers)?);

            let returned = sys::fi_endpoint(domain, self.domain.info().as_ptr(), &mut endpoint, null_mut());
            self.endpoint = Some(Failed::object("fi_endpoint", returned, endpoint)?);

            let both = u64::from(sys::FI_TRANSMIT | sys::FI_RECV);
            Failed::check("fi_ep_bind", sys::fi_ep_bind(endpoint, queue.cast(), both))?;
            Failed::check("fi_ep_bind", sys::fi_ep_bind(endpoint, peers.cast(), 0))?;
            Failed::check("fi_enable", sys::fi_enable(endpoint))
        }
    }

    /// Opens the queue, with a descriptor if it is requested and supported.
    fn open_queue(&mut self, wait: bool) -> Result<(), Failed> {
        if wait && self.try_queue(sys::FI_WAIT_FD).is_ok() {
            let mut descriptor: RawFd = -1;
            // SAFETY: the queue is open, and for this request the call writes one descriptor.
            let returned =
                unsafe { sys::fi_control(self.queue().cast(), sys::FI_GETWAIT as i32, (&raw mut descriptor).cast()) };
            if returned == 0 && descriptor >= 0 {
                self.descriptor = Some(descriptor);
                return Ok(());
            }
            // SAFETY: it was just opened, and nothing is bound to it.
            self.queue.take().map(|queue| unsafe { close(queue.as_ptr().cast()) });
        }
        self.try_queue(sys::FI_WAIT_NONE)
    }

    fn try_queue(&mut self, wait: sys::fi_wait_obj) -> Result<(), Failed> {
        let mut queue = null_mut();
        // SAFETY: zeros are values of the structure, and the domain is open.
        let returned = unsafe {
            let mut attr: sys::fi_cq_attr = std::mem::zeroed();
            attr.size = QUEUE;
            attr.format = sys::FI_CQ_FORMAT_DATA;
            attr.wait_obj = wait;
            sys::fi_cq_open(self.domain.as_ptr(), &mut attr, &mut queue, null_mut())
        };
        self.queue = Some(Failed::object("fi_cq_open", returned, queue)?);
        Ok(())
    }

    /// Closes all open objects; returns whether the endpoint was closed.
    ///
    /// # Safety
    /// The objects are not used afterwards.
    pub(super) unsafe fn close(&mut self) -> bool {
        // SAFETY: each object is open, is taken here, and is closed before the objects that it is
        // bound to.
        unsafe {
            if !self.endpoint.take().is_none_or(|object| close(object.as_ptr().cast())) {
                return false;
            }
            self.queue.take().map(|object| close(object.as_ptr().cast()));
            self.peers.take().map(|object| close(object.as_ptr().cast()));
        }
        self.domain.endpoint_is_closed();
        true
    }

    /// Returns the endpoint's object, which exists once the endpoint is open.
    pub(super) fn endpoint(&self) -> *mut sys::fid_ep {
        self.endpoint.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Returns the completion queue's object, which exists once the endpoint is open.
    pub(super) fn queue(&self) -> *mut sys::fid_cq {
        self.queue.map_or(null_mut(), NonNull::as_ptr)
    }

    pub(super) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns the queue's descriptor if it has one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor belongs to the queue, which is closed when these objects are no
        // longer used.
        self.descriptor.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Returns whether the queue's descriptor wakes a thread that starts to sleep on it now.
    pub(super) fn may_sleep(&self) -> Result<bool, Failed> {
        let mut object = self.queue().cast();
        // SAFETY: the fabric and its queue are open; the call reads one object.
        let returned = unsafe { sys::fi_trywait(self.domain.fabric(), &mut object, 1) };
        if returned == -(sys::FI_EAGAIN as i32) {
            return Ok(false);
        }
        Failed::check("fi_trywait", returned).map(|()| true)
    }

    /// Returns the address of the endpoint, in the form of its offer.
    pub(super) fn name(&self) -> Result<Vec<u8>, Failed> {
        let mut bytes = vec![0; LONGEST_ADDRESS];
        let mut len = bytes.len();
        // SAFETY: the endpoint is open, and the provider writes up to `len` bytes.
        let returned = unsafe { sys::fi_getname(self.endpoint().cast(), bytes.as_mut_ptr().cast(), &mut len) };
        Failed::check("fi_getname", returned)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Adds a peer, and returns its address as numbered by the provider.
    ///
    /// The caller has compared the address with the endpoint's own: format and length are the same.
    pub(super) fn insert(&mut self, address: &[u8]) -> Result<sys::fi_addr_t, Failed> {
        // The zeroed words terminate text addresses, and are sufficiently aligned for all formats.
        let mut words = [0_u64; LONGEST_ADDRESS / 8 + 1];
        for (to, from) in words.iter_mut().zip(address[..address.len().min(LONGEST_ADDRESS)].chunks(8)) {
            let mut word = [0; 8];
            word[..from.len()].copy_from_slice(from);
            *to = u64::from_ne_bytes(word);
        }
        let peers = self.peers.map_or(null_mut(), NonNull::as_ptr);
        let mut made = 0;
        // SAFETY: the vector is open; the buffer is longer than any address of libfabric, ends with
        // zeros, and is only read during the call.
        let returned = unsafe { sys::fi_av_insert(peers, words.as_ptr().cast(), 1, &mut made, 0, null_mut()) };
        Failed::check("fi_av_insert", returned)?;
        if returned == 1 { Ok(made) } else { Err(Failed { call: "fi_av_insert", code: sys::FI_EINVAL as i32 }) }
    }
}
