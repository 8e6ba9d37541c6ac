//! Commands: each posted immediately, or prepared as a descriptor.

use super::{code, give, not_null};
use crate::{
    failure::{Code, Outcome},
    posting::{Slot, prepare},
    request::{Change, Common, Request, with_flags, word},
    vcq,
};
use core::ffi::{c_int, c_ulong, c_void};
use rdma_fabric::control_queue::{Command, Inline, Posting, Width};
use tofu2_shm::nic::SLOT_BYTES;

/// Writes the descriptors of a command.
///
/// # Safety
/// See the module `names`; `desc` has room for the descriptors.
unsafe fn write(posting: Outcome<Posting>, desc: *mut c_void, desc_size: *mut usize) -> c_int {
    let write = || {
        not_null(desc)?;
        not_null(desc_size)?;
        let posting = posting?;
        // SAFETY: guaranteed by the caller: each command has room for its descriptors.
        let size = prepare(&posting, |at, slot| unsafe { give(desc.cast::<Slot>().add(at), slot) });
        // SAFETY: guaranteed by the caller.
        unsafe { give(desc_size, size) };
        Ok(())
    };
    code(write())
}

/// Returns the bytes of a piggyback put. They always take the long form of the descriptor, as on the
/// machine.
///
/// # Safety
/// See the module `names`; `data` has `len` bytes.
unsafe fn carried(data: *const c_void, len: usize) -> Outcome<Inline> {
    not_null(data)?;
    if len > Inline::MOST {
        return Err(Code::INVALID_SIZE.because(format_args!("{len} bytes are more than {}", Inline::MOST)));
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) };
    let wrong = || Code::INVALID_SIZE.because("too many bytes");
    Inline::new(bytes).map(Inline::long).ok_or_else(wrong)
}

/// Defines the two functions of each command: their arguments between the VCQ id and `edata`, those
/// after the flags, and the request that they describe.
macro_rules! commands {
    ($($name:ident $prepare:ident ($($arg:ident: $type:ty),*) ($($shape:ident),*) $request:expr;)*) => { $(
        /// # Safety
        /// See the module `names`.
        // SAFETY: the name is this library's own.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            vcq_hdl: usize,
            rmt_vcq_id: u64,
            $($arg: $type,)*
            edata: u64,
            flags: c_ulong,
            $($shape: usize,)*
            cbdata: *mut c_void,
        ) -> c_int {
            let shape = <[usize; 2]>::try_from(&[$($shape),*][..]).ok();
            let common = Common { to: rmt_vcq_id, edata, flags, shape };
            let request: Outcome<Request> = $request;
            code(request.and_then(|request| {
                let call = stringify!($name);
                vcq::with(vcq_hdl, call, |vcq| vcq.post_request(call, &common, &request, cbdata.expose_provenance() as u64))
            }))
        }

        /// # Safety
        /// See the module `names`; `desc` has room for the descriptors.
        // SAFETY: the name is this library's own.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $prepare(
            vcq_hdl: usize,
            rmt_vcq_id: u64,
            $($arg: $type,)*
            edata: u64,
            flags: c_ulong,
            $($shape: usize,)*
            desc: *mut c_void,
            desc_size: *mut usize,
        ) -> c_int {
            let shape = <[usize; 2]>::try_from(&[$($shape),*][..]).ok();
            let common = Common { to: rmt_vcq_id, edata, flags, shape };
            let request: Outcome<Request> = $request;
            let posting = request.and_then(|request| {
                vcq::with(vcq_hdl, stringify!($prepare), |vcq| vcq.request(&common, &request))
            });
            // SAFETY: guaranteed by the caller.
            unsafe { write(posting, desc, desc_size) }
        }
    )* };
}

commands! {
    utofu_put utofu_prepare_put (lcl_stadd: u64, rmt_stadd: u64, length: usize) ()
        Ok(Request::Put { local: lcl_stadd, remote: rmt_stadd, len: length, stride: 0, blocks: 1 });
    utofu_put_gap utofu_prepare_put_gap (lcl_stadd: u64, rmt_stadd: u64, length: usize) (mtu, gap)
        Ok(Request::Put { local: lcl_stadd, remote: rmt_stadd, len: length, stride: 0, blocks: 1 });
    utofu_put_stride utofu_prepare_put_stride
        (lcl_stadd: u64, rmt_stadd: u64, length: usize, stride: usize, num_blocks: usize) ()
        Ok(Request::Put { local: lcl_stadd, remote: rmt_stadd, len: length, stride, blocks: num_blocks });
    utofu_put_stride_gap utofu_prepare_put_stride_gap
        (lcl_stadd: u64, rmt_stadd: u64, length: usize, stride: usize, num_blocks: usize) (mtu, gap)
        Ok(Request::Put { local: lcl_stadd, remote: rmt_stadd, len: length, stride, blocks: num_blocks });
    utofu_put_piggyback utofu_prepare_put_piggyback (lcl_data: *mut c_void, rmt_stadd: u64, length: usize) ()
        // SAFETY: guaranteed by the caller.
        unsafe { carried(lcl_data, length) }.map(|bytes| Request::Piggyback { bytes, remote: rmt_stadd });
    utofu_put_piggyback8 utofu_prepare_put_piggyback8 (lcl_data: u64, rmt_stadd: u64, length: usize) ()
        word(lcl_data, length).map(|bytes| Request::Piggyback { bytes, remote: rmt_stadd });
    utofu_get utofu_prepare_get (lcl_stadd: u64, rmt_stadd: u64, length: usize) ()
        Ok(Request::Get { local: lcl_stadd, remote: rmt_stadd, len: length, stride: 0, blocks: 1 });
    utofu_get_gap utofu_prepare_get_gap (lcl_stadd: u64, rmt_stadd: u64, length: usize) (mtu, gap)
        Ok(Request::Get { local: lcl_stadd, remote: rmt_stadd, len: length, stride: 0, blocks: 1 });
    utofu_get_stride utofu_prepare_get_stride
        (lcl_stadd: u64, rmt_stadd: u64, length: usize, stride: usize, num_blocks: usize) ()
        Ok(Request::Get { local: lcl_stadd, remote: rmt_stadd, len: length, stride, blocks: num_blocks });
    utofu_get_stride_gap utofu_prepare_get_stride_gap
        (lcl_stadd: u64, rmt_stadd: u64, length: usize, stride: usize, num_blocks: usize) (mtu, gap)
        Ok(Request::Get { local: lcl_stadd, remote: rmt_stadd, len: length, stride, blocks: num_blocks });
    utofu_armw4 utofu_prepare_armw4 (armw_op: c_int, op_value: u32, rmt_stadd: u64) ()
        Ok(Request::Atomic { remote: rmt_stadd, width: Width::Four, change: Change::Op(armw_op, op_value.into()) });
    utofu_armw8 utofu_prepare_armw8 (armw_op: c_int, op_value: u64, rmt_stadd: u64) ()
        Ok(Request::Atomic { remote: rmt_stadd, width: Width::Eight, change: Change::Op(armw_op, op_value) });
    utofu_cswap4 utofu_prepare_cswap4 (old_value: u32, new_value: u32, rmt_stadd: u64) ()
        Ok(Request::Atomic {
            remote: rmt_stadd,
            width: Width::Four,
            change: Change::CompareSwap(old_value.into(), new_value.into()),
        });
    utofu_cswap8 utofu_prepare_cswap8 (old_value: u64, new_value: u64, rmt_stadd: u64) ()
        Ok(Request::Atomic { remote: rmt_stadd, width: Width::Eight, change: Change::CompareSwap(old_value, new_value) });
}

/// Posts a command that does nothing.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn utofu_nop(vcq_hdl: usize, flags: c_ulong, cbdata: *mut c_void) -> c_int {
    let posting = with_flags(Command::Nop, flags);
    code(posting.and_then(|posting| {
        let posting = Posting { tag: cbdata.expose_provenance() as u64, ..posting };
        vcq::with(vcq_hdl, "utofu_nop", |vcq| vcq.post("utofu_nop", &posting))
    }))
}

/// # Safety
/// See the module `names`; `desc` has room for a descriptor.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_prepare_nop(
    vcq_hdl: usize,
    flags: c_ulong,
    desc: *mut c_void,
    desc_size: *mut usize,
) -> c_int {
    let posting = vcq::with(vcq_hdl, "utofu_prepare_nop", |_| with_flags(Command::Nop, flags));
    // SAFETY: guaranteed by the caller.
    unsafe { write(posting, desc, desc_size) }
}

/// # Safety
/// See the module `names`; `desc` has `desc_size` bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_post_toq(vcq_hdl: usize, desc: *mut c_void, desc_size: usize, cbdata: *mut c_void) -> c_int {
    let post = || {
        not_null(desc)?;
        if desc_size == 0 || !desc_size.is_multiple_of(SLOT_BYTES) {
            return Err(Code::INVALID_SIZE.because(format_args!("{desc_size} bytes are not whole descriptors")));
        }
        let call = "utofu_post_toq";
        let cb = cbdata.expose_provenance() as u64;
        if desc.cast::<Slot>().is_aligned() {
            // SAFETY: guaranteed by the caller; aligned.
            let slots = unsafe { core::slice::from_raw_parts(desc.cast::<Slot>(), desc_size / SLOT_BYTES) };
            return vcq::with(vcq_hdl, call, |vcq| vcq.post_slots(call, slots, cb));
        }
        // SAFETY: guaranteed by the caller.
        let slots = (0..desc_size / SLOT_BYTES).map(|at| unsafe { desc.cast::<Slot>().add(at).read_unaligned() });
        let slots: Vec<Slot> = slots.collect();
        vcq::with(vcq_hdl, call, |vcq| vcq.post_slots(call, &slots, cb))
    };
    code(post())
}
