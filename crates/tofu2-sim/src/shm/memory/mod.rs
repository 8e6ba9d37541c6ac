//! A rank's memory: what is mapped, what is registered, how it is reached, and when its bytes are
//! reused.
//!
//! To be read in this order: where things are ([`layout`]); the bytes and words themselves
//! ([`mapping`]); the table that says what peers may reach ([`regions`]); which bytes of the heap
//! are taken ([`heap`], [`allocator`]) and get their [`pages`], by one rank alone or by all together
//! ([`symmetric`], [`locked`]); what keeps them registered ([`registration`]); memory that existed before it was
//! registered ([`existing`], [`adopted`]); what an operation finds behind a place and copies
//! ([`place`], [`transfers`]); and how deregistration waits for operations in flight ([`inside`],
//! [`retired`]).

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
pub(crate) mod regions;
pub(crate) mod registration;
mod retired;
mod symmetric;
pub(crate) mod transfers;
pub(crate) mod word;

pub(crate) use mapping::{Mapping, Piece};
