//! The parts of PMIx's headers that are used here: structures, constants and function types.
//!
//! All declarations are written by hand. A C program printed sizes, offsets, constants and
//! prototypes from the headers of libpmix 4.2.2, and from those of the branches v3.0, v3.2, v4.0,
//! v4.1, v4.2, v5.0, v6.0 and v6.1 of OpenPMIx, for x86-64: all agree with the assertions here. In
//! 2.x `pmix_value_t` has 24 bytes instead of 32. Only 64-bit systems were compared. All versions
//! have the soname `libpmix.so.2`.

use core::{
    ffi::{CStr, c_char, c_int},
    mem::offset_of,
};

/// The maximum length of a key in bytes, without the terminating zero (`PMIX_MAX_KEYLEN`).
pub(super) const KEY_LIMIT: usize = 511;
/// All ranks of a namespace, whose values are those of the job (`PMIX_RANK_WILDCARD`).
pub(super) const JOB: u32 = u32::MAX - 1;
/// The key of the number of ranks, a `u32` (`PMIX_JOB_SIZE`).
pub(super) const JOB_SIZE: &CStr = c"pmix.job.size";
/// The call timed out (`PMIX_ERR_TIMEOUT`).
pub(super) const TIMEOUT: i32 = -24;
/// There is no such value (`PMIX_ERR_NOT_FOUND`).
pub(super) const NOT_FOUND: i32 = -46;

/// `PMIX_GLOBAL`: for ranks on this host and on others.
pub(super) const GLOBAL: u8 = 3;
pub(super) const BOOL: u16 = 1;
pub(super) const INT: u16 = 6;
pub(super) const UINT32: u16 = 14;
pub(super) const BYTE_OBJECT: u16 = 27;
pub(super) const COLLECT_DATA: &CStr = c"pmix.collect";
pub(super) const TIMEOUT_KEY: &CStr = c"pmix.timeout";

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Proc {
    pub(super) namespace: [u8; 256],
    pub(super) rank: u32,
}

/// `pmix_byte_object_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ByteObject {
    pub(super) bytes: *mut c_char,
    pub(super) size: usize,
}

/// The largest member of `pmix_value_t`'s union, `pmix_envar_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Variable {
    name: *mut c_char,
    value: *mut c_char,
    separator: c_char,
}

/// The union of `pmix_value_t`, without the members that are not read here.
#[repr(C)]
pub(super) union Data {
    pub(super) flag: bool,
    pub(super) integer: c_int,
    pub(super) uint32: u32,
    pub(super) bytes: ByteObject,
    _largest: Variable,
}

/// `pmix_value_t`.
#[repr(C)]
pub(super) struct Value {
    pub(super) kind: u16,
    pub(super) data: Data,
}

/// `pmix_info_t`.
#[repr(C)]
pub(super) struct Info {
    pub(super) key: [u8; KEY_LIMIT + 1],
    pub(super) flags: u32,
    pub(super) value: Value,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Proc>() == 260 && offset_of!(Proc, rank) == 256);
    assert!(size_of::<ByteObject>() == 16 && offset_of!(ByteObject, size) == 8);
    assert!(size_of::<Value>() == 32 && align_of::<Value>() == 8 && offset_of!(Value, data) == 8);
    assert!(size_of::<Info>() == 552 && offset_of!(Info, flags) == 512 && offset_of!(Info, value) == 520);
};

pub(super) type Init = unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int;
pub(super) type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
pub(super) type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
pub(super) type Commit = unsafe extern "C" fn() -> c_int;
pub(super) type Fence = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int;
pub(super) type Get = unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
pub(super) type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
pub(super) type GetVersion = unsafe extern "C" fn() -> *const c_char;
