//! libfabric (OFI) below one-sided communication: what it offers on a machine, and a bare layer
//! over it that is safe to own.
//!
//! Without the feature `ofi`, which is off by default, this crate is empty and needs no library.
//! With it, `probe` tells what libfabric offers here and what is missing for the contract of
//! `rdma-fabric`, found by trying, not from what providers claim; and `Domain`, `Region` and
//! `Endpoint` are registered memory and reliable datagram endpoints that put, get, change remote
//! words and send messages. `cluster` is a provider of `rdma-fabric` over them, for jobs on several
//! nodes.
//!
//! # Who makes progress
//! Providers in software answer a peer only while this process calls [`Endpoint::progress`]. A rank
//! that computes stalls those that use its memory.
//!
//! # Safety of memory
//! Memory of a [`Region`] is written by NICs and by other processes at any time, so it is read and
//! written by copying. It is registered as long as the region or an operation under way holds it.
//! Afterwards it stays mapped until no endpoint of its domain is open, for bytes that come late.
//!
//! What libfabric sends is neither authenticated nor encrypted: whoever can reach an endpoint's
//! address and knows a key may use the memory.
#![cfg_attr(not(feature = "ofi"), allow(rustdoc::broken_intra_doc_links))]
#![cfg(feature = "ofi")]

mod atomics;
pub mod cluster;
mod domain;
mod endpoint;
mod error;
mod event;
mod key;
mod name;
mod options;
mod peer;
mod pool;
pub mod probe;
mod raw;
mod region;
mod slots;
mod verdict;
mod words;

/// Gives signals that a library of libfabric's handles their default effect, and returns these signals.
///
/// The libraries of InfiniPath and Omni-Path, which libfabric is linked against on many systems, install
/// handlers when a program is loaded: SIGINT and SIGTERM then end it with code 1, whatever else handles
/// them, and SIGSEGV is reported as that code. Call this at the start of `main`, before handlers of the
/// program's own; `onesided::launch` does. Variables prevent it too, if they are there when the program is
/// loaded: [`NO_HANDLERS`].
pub fn release_signals() -> Vec<i32> {
    raw::release_signals()
}

/// The variables that, if set, keep those libraries from installing handlers.
pub const NO_HANDLERS: [&str; 2] = ["HFI_NO_BACKTRACE", "IPATH_NO_BACKTRACE"];

pub use {
    atomics::{AtomicKind, Atomics, WordKind},
    domain::Domain,
    endpoint::Endpoint,
    error::{BadName, OfiError, Reply, Result},
    event::{Brought, Event, Failure},
    key::RemoteKey,
    options::{EndpointOptions, GetInto, Limits, PutFrom},
    peer::Peer,
    probe::{Offer, Reason, Wanted, providers},
    rdma_fabric::Amo,
    region::Region,
};
