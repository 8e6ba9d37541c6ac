//! The offers of libfabric.

use super::{API, Failed, nic::describe, sys, text};
use crate::{
    nic::Nic,
    verdict::{delivers, keeps_words},
};
use std::{ffi::CString, ptr::NonNull, ptr::null, ptr::null_mut};

/// The requirements on an offer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// Whether endpoints must be reliable datagram endpoints.
    pub(crate) reliable_datagrams: bool,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) registration: u32,
    pub(crate) order: u64,
    /// libfabric's number for the resource management.
    pub(crate) resources: u32,
    pub(crate) address_format: u32,
    pub(crate) provider: Option<CString>,
    pub(crate) fabric: Option<CString>,
    pub(crate) domain: Option<CString>,
}

/// A copy of the data in an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) provider: String,
    pub(crate) fabric: String,
    pub(crate) domain: String,
    pub(crate) endpoint_type: u32,
    pub(crate) protocol: u32,
    pub(crate) address_format: u32,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) registration: u32,
    /// Whether registered memory must have pages, because registration pins them. A provider that
    /// was asked for `FI_MR_BASIC` does not tell.
    pub(crate) pins: bool,
    /// Whether puts that ask for it complete when their bytes are visible.
    pub(crate) delivery: bool,
    /// Whether puts and gets keep aligned words whole.
    pub(crate) words: bool,
    pub(crate) key_bytes: usize,
    pub(crate) data_bytes: usize,
    pub(crate) order: u64,
    /// The longest read after write, write after read and write after write whose bytes are in
    /// order.
    pub(crate) ordered: [usize; 3],
    pub(crate) longest: usize,
    pub(crate) inject: usize,
    pub(crate) depth: usize,
    pub(crate) receives: usize,
    pub(crate) resources: u32,
    pub(crate) nic: Option<Nic>,
}

/// One offer, as libfabric wrote it.
#[derive(Debug)]
pub(crate) struct Info(NonNull<sys::fi_info>);

// SAFETY: the structure is this value's own copy, and is not written after its creation.
unsafe impl Send for Info {}
// SAFETY: as above.
unsafe impl Sync for Info {}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the copy belongs to this value, and is no longer used.
        unsafe { sys::fi_freeinfo(self.0.as_ptr()) };
    }
}

impl Info {
    /// Returns an empty structure.
    fn empty() -> Result<Self, Failed> {
        // SAFETY: without a structure to copy, a new one is made.
        let made = unsafe { sys::fi_dupinfo(null()) };
        Failed::object("fi_allocinfo", 0, made).map(Self)
    }

    /// Queries the offers that match.
    pub(crate) fn query(hints: &Hints) -> Result<Vec<Self>, Failed> {
        let asked = Self::empty()?;
        let name = |name: &Option<CString>| name.as_ref().map_or(null_mut(), |name| name.as_ptr().cast_mut());
        let mut first = null_mut();
        // SAFETY: a new structure has its attributes, and no other owner. The names belong to
        // `hints`, are only read by the query, and are removed before the structure is freed. The
        // query returns a list that ends with null; each element is copied, then the list is freed.
        unsafe {
            let info = asked.0.as_ptr();
            (*info).caps = hints.caps;
            (*info).mode = hints.mode;
            (*info).addr_format = hints.address_format;
            (*(*info).ep_attr).type_ = if hints.reliable_datagrams { sys::FI_EP_RDM } else { sys::FI_EP_UNSPEC };
            (*(*info).tx_attr).msg_order = hints.order;
            (*(*info).rx_attr).msg_order = hints.order;
            (*(*info).domain_attr).mr_mode = hints.registration as i32;
            (*(*info).domain_attr).resource_mgmt = hints.resources;
            (*(*info).domain_attr).threading = sys::FI_THREAD_SAFE;
            // Requests manual progress: a provider's threads would take the CPU from threads that
            // wait.
            sys::fi_set_data_progress((*info).domain_attr, sys::FI_PROGRESS_MANUAL);
            (*(*info).domain_attr).name = name(&hints.domain);
            (*(*info).fabric_attr).name = name(&hints.fabric);
            (*(*info).fabric_attr).prov_name = name(&hints.provider);
            let returned = sys::fi_getinfo(API, null(), null(), 0, info, &mut first);
            (*(*info).domain_attr).name = null_mut();
            (*(*info).fabric_attr).name = null_mut();
            (*(*info).fabric_attr).prov_name = null_mut();
            if returned == -(sys::FI_ENODATA as i32) {
                return Ok(Vec::new());
            }
            Failed::check("fi_getinfo", returned)?;
            let mut all = Vec::new();
            let mut next = first;
            while !next.is_null() {
                all.extend(NonNull::new(sys::fi_dupinfo(next)).map(Self));
                next = (*next).next;
            }
            sys::fi_freeinfo(first);
            Ok(all)
        }
    }

    /// Returns the structure, for calls that read it.
    pub(super) fn as_ptr(&self) -> *mut sys::fi_info {
        self.0.as_ptr()
    }

    /// Copies the data of the offer; missing attributes count as zeros.
    pub(crate) fn facts(&self) -> Facts {
        // SAFETY: the structure and the attributes that it points to exist and do not change; its
        // texts end with zeros.
        unsafe {
            let info = self.0.as_ref();
            let (domain, fabric) = (info.domain_attr.as_ref(), info.fabric_attr.as_ref());
            let (endpoint, send) = (info.ep_attr.as_ref(), info.tx_attr.as_ref());
            let receive_order = info.rx_attr.as_ref().map_or(0, |attr| attr.msg_order);
            let provider = fabric.and_then(|attr| text(attr.prov_name)).unwrap_or_default();
            let nic = info.nic.as_ref().map(|nic| describe(nic));
            Facts {
                delivery: delivers(&provider),
                words: keeps_words(&provider, nic.as_ref()),
                provider,
                fabric: fabric.and_then(|attr| text(attr.name)).unwrap_or_default(),
                domain: domain.and_then(|attr| text(attr.name)).unwrap_or_default(),
                endpoint_type: endpoint.map_or(sys::FI_EP_UNSPEC, |attr| attr.type_),
                protocol: endpoint.map_or(0, |attr| attr.protocol),
                address_format: info.addr_format,
                caps: info.caps,
                mode: info.mode | domain.map_or(0, |attr| attr.mode),
                registration: domain.map_or(0, |attr| spelt_out(attr.mr_mode as u32)),
                pins: domain.is_some_and(|attr| attr.mr_mode as u32 & sys::FI_MR_ALLOCATED != 0),
                key_bytes: domain.map_or(0, |attr| attr.mr_key_size),
                data_bytes: domain.map_or(0, |attr| attr.cq_data_size),
                order: send.map_or(0, |attr| attr.msg_order) & receive_order,
                ordered: endpoint
                    .map_or([0; 3], |attr| [attr.max_order_raw_size, attr.max_order_war_size, attr.max_order_waw_size]),
                longest: endpoint.map_or(0, |attr| attr.max_msg_size),
                inject: send.map_or(0, |attr| attr.inject_size),
                depth: send.map_or(0, |attr| attr.size),
                receives: info.rx_attr.as_ref().map_or(0, |attr| attr.size),
                resources: domain.map_or(0, |attr| attr.resource_mgmt),
                nic,
            }
        }
    }
}

/// Returns the registration modes that an older name stands for; other modes are returned as they
/// are.
fn spelt_out(registration: u32) -> u32 {
    match registration {
        sys::FI_MR_BASIC => sys::FI_MR_LOCAL | sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY,
        sys::FI_MR_SCALABLE => 0,
        ways => ways,
    }
}

/// Returns the library's version of the interface: major and minor.
pub(crate) fn version() -> (u32, u32) {
    // SAFETY: the call reads a constant.
    let version = unsafe { sys::fi_version() };
    (version >> 16, version & 0xffff)
}
