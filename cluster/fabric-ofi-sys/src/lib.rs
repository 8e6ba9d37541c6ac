//! Raw bindings to [libfabric](https://ofiwg.github.io/libfabric/) (OFI), 1.17 or later.
//!
//! Without the feature `ofi`, which is off by default, this crate is empty. With it, the crate
//! contains the items of libfabric's headers under their C names: `fi_*` functions, including the
//! static inline ones, types, and `FI_*` constants. `fi_set_data_progress` is this crate's own: it sets
//! a field whose place differs between 1.x and 2.x. All functions are unsafe; the manual pages of
//! libfabric state their requirements. `fabric-ofi` is the safe layer above.

#[cfg(feature = "ofi")]
mod bindings {
    #![allow(
        dead_code,
        missing_docs,
        missing_debug_implementations,
        non_camel_case_types,
        non_snake_case,
        non_upper_case_globals,
        unreachable_pub,
        unsafe_code,
        unsafe_op_in_unsafe_fn,
        clippy::all,
        clippy::undocumented_unsafe_blocks,
        rustdoc::all
    )]

    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

#[cfg(feature = "ofi")]
pub use bindings::*;

/// A mode of memory registration of versions before 1.5, which later ones accept as well. The
/// headers of 2.0 and later have this value in a form that can't be bound.
#[cfg(feature = "ofi")]
pub const FI_MR_BASIC: u32 = 1 << 0;
/// Another such mode.
#[cfg(feature = "ofi")]
pub const FI_MR_SCALABLE: u32 = 1 << 1;
/// A mode of providers of versions before 1.5, with the same restriction.
#[cfg(feature = "ofi")]
pub const FI_LOCAL_MR: u64 = 1 << 55;
