//! The capabilities of TNIs: those of TofuD.

use crate::{
    failure::{Code, Outcome},
    ids::TNIS,
};
use core::ffi::{c_uint, c_ulong};
use rdma_fabric::control_queue::Inline;
use std::sync::OnceLock;

/// Bytes of the longest put or get.
pub(crate) const MAX_PUT_GET: usize = (1 << 24) - 1;
/// Component ids.
pub(crate) const COMPONENTS: u16 = 8;
/// Fixed steering tags of a VCQ.
pub(crate) const RESERVED_STAGS: u32 = 256;
/// Bytes of the largest packet's payload.
pub(crate) const MAX_MTU: usize = 1920;
/// The largest gap between packets.
pub(crate) const MAX_GAP: usize = 255;

/// `struct utofu_onesided_caps`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct OnesidedCaps {
    flags: c_ulong,
    armw_ops: c_ulong,
    num_cmp_ids: c_uint,
    num_reserved_stags: c_uint,
    cache_line_size: usize,
    stag_address_alignment: usize,
    max_toq_desc_size: usize,
    max_putget_size: usize,
    max_piggyback_size: usize,
    max_edata_size: usize,
    max_mtu: usize,
    max_gap: usize,
}

/// `struct utofu_barrier_caps`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BarrierCaps {
    flags: c_ulong,
    reduce_ops: c_ulong,
    max_uint64_reduction: usize,
    max_double_reduction: usize,
}

/// Checks the id of a TNI.
///
/// # Errors
/// [`Code::INVALID_TNI_ID`].
pub(crate) fn tni(id: u16) -> Outcome<u8> {
    if id < TNIS { Ok(id as u8) } else { Err(Code::INVALID_TNI_ID.because(format_args!("{id} is not below {TNIS}"))) }
}

/// Returns the capabilities of every TNI, in memory that a program could overwrite without a fault.
pub(crate) fn onesided() -> &'static OnesidedCaps {
    static CAPS: OnceLock<Box<OnesidedCaps>> = OnceLock::new();
    CAPS.get_or_init(|| {
        Box::new(OnesidedCaps {
            // Session mode and atomics.
            flags: 3,
            // Compare-and-swap, swap, add, xor, and, or.
            armw_ops: 0x3f,
            num_cmp_ids: COMPONENTS.into(),
            num_reserved_stags: RESERVED_STAGS,
            cache_line_size: 256,
            stag_address_alignment: 256,
            max_toq_desc_size: 64,
            max_putget_size: MAX_PUT_GET,
            max_piggyback_size: Inline::MOST,
            max_edata_size: 1,
            max_mtu: MAX_MTU,
            max_gap: MAX_GAP,
        })
    })
}

/// Returns the capabilities of every TNI's barrier unit, likewise.
pub(crate) fn barrier() -> &'static BarrierCaps {
    static CAPS: OnceLock<Box<BarrierCaps>> = OnceLock::new();
    CAPS.get_or_init(|| {
        Box::new(BarrierCaps { flags: 0, reduce_ops: 0x1fe, max_uint64_reduction: 6, max_double_reduction: 3 })
    })
}
