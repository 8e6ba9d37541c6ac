//! Raw bindings to [libfabric](https://ofiwg.github.io/libfabric/) (OFI), 1.17 or later.
//!
//! Without the feature `ofi`, which is off by default, this crate is empty. With it, the crate
//! contains the items of libfabric's headers under their C names: `fi_*` functions, including the
//! static inline ones, types, and `FI_*` constants. All functions are unsafe; the manual pages of
//! libfabric state their requirements. `fabric-ofi` is the safe layer above.

#[cfg(feature = "ofi")]
mod bindings {
    #![allow(
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
