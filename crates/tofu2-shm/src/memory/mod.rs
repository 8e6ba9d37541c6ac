//! A rank's memory: mapping, registration, access, and the reuse of bytes.
//!
//! Read the modules in this order: the positions of all parts ([`layout`]); the bytes and words
//! themselves ([`mapping`]); the table of the regions that peers may access ([`regions`]); the
//! allocated bytes of the heap ([`heap`], [`allocator`]) and their [`pages`], allocated by one rank
//! alone or by all together ([`symmetric`], [`locked`]); the handles that keep them registered
//! ([`registration`]); registered existing memory ([`existing`], [`adopted`]); the program's memory
//! that shares its pages with the heap ([`program`](mod@program)); the bytes of a
//! place, and how operations copy them ([`place`], [`transfers`]); and how deregistration waits for
//! operations in flight ([`inside`], [`retired`]).

pub(crate) mod adopted;
pub(crate) mod allocator;
pub(crate) mod existing;
pub(crate) mod heap;
pub(crate) mod inside;
pub(crate) mod layout;
pub(crate) mod locked;
pub(crate) mod mapping;
mod pages;
pub(crate) mod place;
#[cfg(target_os = "linux")]
pub(crate) mod program;
pub(crate) mod regions;
pub(crate) mod registration;
mod retired;
mod symmetric;
pub(crate) mod transfers;
pub(crate) mod word;

pub(crate) use mapping::{Kept, Mapping, Piece};
