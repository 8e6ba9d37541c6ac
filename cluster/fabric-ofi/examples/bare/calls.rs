//! Direct libfabric calls, the baseline of the measurement: as few as possible, with the same
//! options.
//!
//! All objects and buffers live until the process ends, so no memory that libfabric uses is freed;
//! each buffer is used by one operation at a time.

#![allow(unsafe_code)]

use crate::{LONG, Operation, Result, Side, answer_until, bounded};
use fabric_ofi_sys as sys;
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap},
};
use std::{
    ffi::CString,
    mem::zeroed,
    ptr::{null, null_mut},
    time::Instant,
};

/// Number of entries that are read at a time.
const BATCH: usize = 16;
/// Number of buffers for messages.
const RECEIVES: usize = 64;
/// Size of such a buffer in bytes.
const MESSAGE: usize = 4096;
/// Number of bytes before the buffers for messages: the part that peers access, and the part used
/// by this process's operations.
const FIRST: usize = 2 * LONG;

pub(crate) struct Calls {
    endpoint: *mut sys::fid_ep,
    queue: *mut sys::fid_cq,
    peers: *mut sys::fid_av,
    peer: sys::fi_addr_t,
    memory: *mut u8,
    descriptor: *mut std::ffi::c_void,
    /// Key and first address: of this process's memory, then of the other process's.
    keys: [[u64; 2]; 2],
    /// Contexts of the operation, then of each buffer for messages.
    notes: *mut sys::fi_context2,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Seen {
    over: bool,
    messages: usize,
}

fn check(call: &str, returned: impl Into<i64>) -> Result<()> {
    let returned = returned.into();
    if returned >= 0 { Ok(()) } else { Err(format!("{call}: {returned}").into()) }
}

/// Queries the same offer as `fabric_ofi`.
fn offer(provider: &str, domain: &str) -> Result<*mut sys::fi_info> {
    let (provider, domain) = (CString::new(provider)?, CString::new(domain)?);
    let mut found = null_mut();
    for order in [sys::FI_ORDER_SAS | sys::FI_ORDER_WAW, sys::FI_ORDER_SAS] {
        // SAFETY: the structure is new, with its attributes. It does not own the names, which are
        // removed from it before they are dropped; it is never freed.
        let returned = unsafe {
            let hints = sys::fi_dupinfo(null());
            (*hints).caps = (sys::FI_MSG | sys::FI_RMA | sys::FI_ATOMIC).into();
            (*hints).mode = sys::FI_CONTEXT | sys::FI_CONTEXT2;
            (*(*hints).ep_attr).type_ = sys::FI_EP_RDM;
            (*(*hints).tx_attr).msg_order = order.into();
            (*(*hints).rx_attr).msg_order = order.into();
            let ways = sys::FI_MR_LOCAL | sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY;
            (*(*hints).domain_attr).mr_mode = (ways | sys::FI_MR_RAW | sys::FI_MR_ENDPOINT) as i32;
            (*(*hints).domain_attr).threading = sys::FI_THREAD_SAFE;
            (*(*hints).domain_attr).resource_mgmt = sys::FI_RM_ENABLED;
            (*(*hints).domain_attr).name = domain.as_ptr().cast_mut();
            (*(*hints).fabric_attr).prov_name = provider.as_ptr().cast_mut();
            let returned = sys::fi_getinfo(1 << 16 | 17, null(), null(), 0, hints, &mut found);
            (*(*hints).domain_attr).name = null_mut();
            (*(*hints).fabric_attr).prov_name = null_mut();
            returned
        };
        if returned == 0 {
            return Ok(found);
        }
    }
    Err("no offer".into())
}

impl Calls {
    pub(crate) fn open(provider: &str, domain: &str) -> Result<Self> {
        let info = offer(provider, domain)?;
        let len = FIRST + RECEIVES * MESSAGE;
        // Memory of the same kind as that of ranks, which other processes can map: its pages are
        // slower.
        let file = memfd_create("bare", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        // SAFETY: a new mapping, of a file that is as long.
        let memory = unsafe { mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)? };
        let memory: *mut u8 = memory.cast();
        // SAFETY: zeros are values of contexts.
        let notes = Vec::leak(vec![unsafe { zeroed::<sys::fi_context2>() }; 1 + RECEIVES]).as_mut_ptr();
        let (mut fabric, mut opened, mut region) = (null_mut(), null_mut(), null_mut());
        let (mut queue, mut peers, mut endpoint) = (null_mut(), null_mut(), null_mut());
        // SAFETY: each object is opened through one that is open, and none is closed.
        unsafe {
            check("fi_fabric", sys::fi_fabric((*info).fabric_attr, &mut fabric, null_mut()))?;
            check("fi_domain", sys::fi_domain(fabric, info, &mut opened, null_mut()))?;
            let mut attr: sys::fi_cq_attr = zeroed();
            (attr.size, attr.format, attr.wait_obj) = (1 << 14, sys::FI_CQ_FORMAT_DATA, sys::FI_WAIT_NONE);
            check("fi_cq_open", sys::fi_cq_open(opened, &mut attr, &mut queue, null_mut()))?;
            let mut attr: sys::fi_av_attr = zeroed();
            check("fi_av_open", sys::fi_av_open(opened, &mut attr, &mut peers, null_mut()))?;
            check("fi_endpoint", sys::fi_endpoint(opened, info, &mut endpoint, null_mut()))?;
            let both = (sys::FI_TRANSMIT | sys::FI_RECV).into();
            check("fi_ep_bind", sys::fi_ep_bind(endpoint, &mut (*queue).fid, both))?;
            check("fi_ep_bind", sys::fi_ep_bind(endpoint, &mut (*peers).fid, 0))?;
            check("fi_enable", sys::fi_enable(endpoint))?;
            let access = sys::FI_SEND | sys::FI_RECV | sys::FI_READ | sys::FI_WRITE;
            let access = u64::from(access | sys::FI_REMOTE_READ | sys::FI_REMOTE_WRITE);
            let start = memory.cast_const().cast();
            check("fi_mr_reg", sys::fi_mr_reg(opened, start, len, access, 0, 77, 0, &mut region, null_mut()))?;
            let virtual_addresses = (*(*info).domain_attr).mr_mode as u32 & sys::FI_MR_VIRT_ADDR != 0;
            let base = if virtual_addresses { memory as u64 } else { 0 };
            let keys = [[sys::fi_mr_key(region), base]; 2];
            let (descriptor, bytes) = (sys::fi_mr_desc(region), vec![1; LONG]);
            let opened = Self { endpoint, queue, peers, peer: 0, memory, descriptor, keys, notes, bytes };
            for buffer in 0..RECEIVES {
                opened.receive(buffer)?;
            }
            Ok(opened)
        }
    }

    fn receive(&self, buffer: usize) -> Result<()> {
        let start = self.memory.wrapping_add(FIRST + buffer * MESSAGE).cast();
        let note = self.notes.wrapping_add(1 + buffer).cast();
        // SAFETY: the buffer is registered, and its message has been processed.
        let returned = unsafe { sys::fi_recv(self.endpoint, start, MESSAGE, self.descriptor, u64::MAX, note) };
        check("fi_recv", returned as i64)
    }

    /// Reads the queue once.
    fn look(&self, seen: &mut Seen) -> Result<()> {
        // SAFETY: zeros are values of the entries, of which the queue has this format.
        let (entries, read) = unsafe {
            let mut entries: [sys::fi_cq_data_entry; BATCH] = zeroed();
            let read = sys::fi_cq_read(self.queue, entries.as_mut_ptr().cast(), BATCH);
            (entries, read)
        };
        if read == -(sys::FI_EAGAIN as isize) {
            return Ok(());
        }
        check("fi_cq_read", read as i64)?;
        for entry in &entries[..read as usize] {
            match (entry.op_context as usize - self.notes as usize) / size_of::<sys::fi_context2>() {
                0 => seen.over = true,
                buffer => {
                    seen.messages += 1;
                    self.receive(buffer - 1)?;
                }
            }
        }
        Ok(())
    }

    fn post(&mut self, operation: Operation) -> isize {
        let Self { endpoint, peer, descriptor, .. } = *self;
        let [_, [key, base]] = self.keys;
        let own = self.memory.wrapping_add(LONG);
        let note = self.notes.cast();
        // SAFETY: the bytes are in the registered memory, and no other operation is in flight.
        unsafe {
            match operation {
                Operation::PutBytes(len) | Operation::Put(len) => {
                    if operation == Operation::PutBytes(len) {
                        own.copy_from_nonoverlapping(self.bytes.as_ptr(), len);
                    }
                    let mut descriptor = descriptor;
                    let from = sys::iovec { iov_base: own.cast(), iov_len: len };
                    let to = sys::fi_rma_iov { addr: base, len, key };
                    let message = sys::fi_msg_rma {
                        msg_iov: &from,
                        desc: &mut descriptor,
                        iov_count: 1,
                        addr: peer,
                        rma_iov: &to,
                        rma_iov_count: 1,
                        context: note,
                        data: 0,
                    };
                    sys::fi_writemsg(endpoint, &message, (sys::FI_COMPLETION | sys::FI_DELIVERY_COMPLETE).into())
                }
                Operation::Get(len) => sys::fi_read(endpoint, own.cast(), len, descriptor, peer, base, key, note),
                Operation::Add => {
                    own.cast::<u64>().write(1);
                    let (operand, old) = (own.cast_const().cast(), own.wrapping_add(8).cast());
                    sys::fi_fetch_atomic(
                        endpoint,
                        operand,
                        1,
                        descriptor,
                        old,
                        descriptor,
                        peer,
                        base,
                        key,
                        sys::FI_UINT64,
                        sys::FI_SUM,
                        note,
                    )
                }
                Operation::PingPong => sys::fi_send(endpoint, own.cast_const().cast(), 8, descriptor, peer, note),
            }
        }
    }

    fn post_and_wait(&mut self, operation: Operation, seen: &mut Seen) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.post(operation) {
                0 => break,
                returned if returned == -(sys::FI_EAGAIN as isize) => self.look(seen)?,
                returned => check("a post", returned as i64)?,
            }
            bounded(begun)?;
        }
        while !seen.over {
            self.look(seen)?;
        }
        Ok(())
    }

    /// Executes an operation, and waits until it completes.
    fn run_once(&mut self, operation: Operation) -> Result<()> {
        let mut seen = Seen::default();
        self.post_and_wait(operation, &mut seen)?;
        while operation == Operation::PingPong && seen.messages == 0 {
            self.look(&mut seen)?;
        }
        Ok(())
    }

    /// Reads the completion queue once, and answers messages.
    fn answer(&mut self) -> Result<()> {
        let mut seen = Seen::default();
        self.look(&mut seen)?;
        // The next message may arrive before the answer to this one completes.
        while seen.messages > 0 {
            seen.messages -= 1;
            seen.over = false;
            self.post_and_wait(Operation::PingPong, &mut seen)?;
        }
        Ok(())
    }
}

impl Side for Calls {
    fn contact(&self) -> Vec<u8> {
        let (mut name, mut len) = ([0_u8; 256], 256);
        // SAFETY: the endpoint is open, and the call writes up to `len` bytes.
        unsafe { sys::fi_getname(&mut (*self.endpoint).fid, name.as_mut_ptr().cast(), &mut len) };
        [&self.keys[0].map(u64::to_ne_bytes).concat()[..], &name[..len]].concat()
    }

    fn connect(&mut self, contact: &[u8]) -> Result<()> {
        let (words, _) = contact.as_chunks::<8>();
        self.keys[1] = [words[0], words[1]].map(u64::from_ne_bytes);
        let mut name = [0_u64; 33];
        // SAFETY: the name is shorter than the buffer, and is only read.
        let inserted = unsafe {
            name.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(contact[16..].as_ptr(), contact.len() - 16);
            sys::fi_av_insert(self.peers, name.as_ptr().cast(), 1, &mut self.peer, 0, null_mut())
        };
        if inserted == 1 { Ok(()) } else { Err("fi_av_insert".into()) }
    }

    fn run(&mut self, operation: Operation, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.run_once(operation))
    }

    fn serve(&mut self, has_ended: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        answer_until(has_ended, || self.answer())
    }
}
