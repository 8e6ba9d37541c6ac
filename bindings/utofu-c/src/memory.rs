//! Registered memory of the program.
//!
//! # Safety
//! A registration keeps the program's promise of `utofu_reg_mem`: until it ends, the bytes stay mapped
//! and other ranks may access them.

#![allow(unsafe_code)]

use crate::{
    caps::RESERVED_STAGS,
    failure::{Code, Outcome, of_fabric},
    ids::{self, VcqId, stadd_from_bits, stadd_to_bits},
    vcq::Vcq,
};
use core::{ops::Range, ptr::NonNull};
use rdma_fabric::{Region, control_queue::Stadd};
use std::collections::BTreeMap;
use tofu2_shm::nic::ShareError;

/// Flag of `utofu_reg_mem`.
const READ_ONLY: u64 = 1;

/// The registrations of a VCQ.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// By tag.
    by_tag: BTreeMap<u32, Registration>,
    /// The automatic tag of each buffer: its address, its length, and whether it is read-only.
    automatic: BTreeMap<(usize, usize, bool), u32>,
}

#[derive(Debug)]
struct Registration {
    first: Stadd,
    start: usize,
    len: usize,
    read_only: bool,
    /// How often the buffer was registered under this tag.
    count: usize,
    _region: Region,
}

impl Registrations {
    /// Returns the addresses of the program's bytes that a STADD of this VCQ denotes; `None` if they
    /// are not registered.
    pub(crate) fn bytes(&self, at: Stadd, len: usize) -> Option<Range<usize>> {
        let registration = self.by_tag.get(&at.tag())?;
        let ahead = usize::try_from(at.offset().checked_sub(registration.first.offset())?).ok()?;
        let start = registration.start.checked_add(ahead)?;
        let end = start.checked_add(len)?;
        (end <= registration.start + registration.len).then_some(start..end)
    }
}

impl Vcq {
    /// Registers `size` bytes at `start`, under the fixed tag `stag` if one is given.
    pub(crate) fn register(&mut self, start: usize, size: usize, stag: Option<u32>, flags: u64) -> Outcome<u64> {
        let Some(at) = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(start)) else {
            return Err(Code::INVALID_ADDRESS.because("the address is null"));
        };
        if size == 0 || start.checked_add(size).is_none() {
            return Err(Code::INVALID_SIZE.because(format_args!("{size} bytes cannot be registered")));
        }
        if flags & !READ_ONLY != 0 {
            return Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits")));
        }
        let read_only = flags & READ_ONLY != 0;
        let tag = match stag {
            None => None,
            Some(tag) if tag >= RESERVED_STAGS => {
                return Err(Code::INVALID_STAG.because(format_args!("tag {tag} is not below {RESERVED_STAGS}")));
            }
            Some(tag) => {
                if self.registrations.by_tag.contains_key(&tag) {
                    self.strict("utofu_reg_mem_with_stag", format_args!("tag {tag} is in use already"));
                    return Err(Code::INVALID_STAG.because(format_args!("tag {tag} is in use")));
                }
                Some(tag as u8)
            }
        };
        let known = self.registrations.automatic.get(&(start, size, read_only)).filter(|_| tag.is_none());
        if let Some(known) = known.and_then(|tag| self.registrations.by_tag.get_mut(tag)) {
            known.count += 1;
            return Ok(stadd_to_bits(known.first, self.id.context));
        }
        // SAFETY: the program's promise; the region is dropped when the registration ends.
        let region = unsafe { self.job.machine.share(at, size) }.map_err(|error| {
            let code = match &error {
                ShareError::NotMapped(_) => Code::INVALID_ADDRESS,
                ShareError::NotPrivate(_) => Code::NOT_SUPPORTED,
                ShareError::Straddles(_) => Code::OUT_OF_RESOURCE,
                ShareError::Fabric(error) => of_fabric(error),
                _ => Code::FATAL,
            };
            code.because(&error)
        })?;
        let first = self.queue.register(&region, tag).map_err(|error| of_fabric(&error))?;
        if read_only {
            self.queue.set_read_only(first, true).map_err(|error| of_fabric(&error))?;
        }
        if tag.is_none() {
            self.registrations.automatic.insert((start, size, read_only), first.tag());
        }
        let registration = Registration { first, start, len: size, read_only, count: 1, _region: region };
        self.registrations.by_tag.insert(first.tag(), registration);
        Ok(stadd_to_bits(first, self.id.context))
    }

    /// Ends a registration, unless the buffer was registered more often.
    pub(crate) fn deregister(&mut self, stadd: u64, flags: u64) -> Outcome<()> {
        if flags != 0 {
            return Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits")));
        }
        let at = stadd_from_bits(stadd, self.id.context);
        let Some(registration) = self.registrations.by_tag.get_mut(&at.tag()).filter(|known| known.first == at) else {
            return Err(Code::INVALID_STADD.because(format_args!("no registration starts at {stadd:#x}")));
        };
        registration.count -= 1;
        if registration.count > 0 {
            return Ok(());
        }
        self.queue.deregister(at).map_err(|error| of_fabric(&error))?;
        if let Some(Registration { start, len, read_only, .. }) = self.registrations.by_tag.remove(&at.tag()) {
            self.registrations.automatic.retain(|key, tag| *key != (start, len, read_only) || *tag != at.tag());
        }
        Ok(())
    }
}

/// Returns the STADD of the memory that a VCQ has registered, or will register, under a fixed tag.
pub(crate) fn query(vcq: u64, stag: u32) -> Outcome<u64> {
    let id = VcqId::from_bits(vcq)?;
    if stag >= RESERVED_STAGS {
        return Err(Code::INVALID_STAG.because(format_args!("tag {stag} is not below {RESERVED_STAGS}")));
    }
    Ok(ids::stadd_to_bits(Stadd::fixed(stag as u8), id.context))
}
