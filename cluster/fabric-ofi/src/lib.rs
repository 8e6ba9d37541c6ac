//! libfabric (OFI) for one-sided communication: the offers of a machine, and a thin safe layer over
//! libfabric.
//!
//! Without the feature `ofi`, which is off by default, this crate is empty and needs no library.
//! With it, `probe` reports the offers of libfabric on this machine, and for each of them whether
//! it meets the contract of `rdma-fabric`, as found by trials instead of the claims of providers.
//! `Domain`, `Region` and `Endpoint` are registered memory and reliable datagram endpoints that
//! put, get, change remote words and send messages. `cluster` is a provider of `rdma-fabric` over
//! them, for jobs on several nodes.
//!
//! # Progress
//! Software providers answer peers only while this process calls [`Endpoint::progress`]. A rank
//! that computes stalls the ranks that access its memory.
//!
//! # Safety of memory
//! NICs and other processes write the memory of a [`Region`] at any time, so it is read and written
//! by copying. It is registered as long as the region or an operation in flight holds it. After
//! that it stays mapped until no endpoint of its domain is open, because bytes may arrive late.
//!
//! libfabric neither authenticates nor encrypts its messages: any process that can reach an
//! endpoint's address and knows a key can access the memory.
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
mod nic;
mod options;
mod peer;
mod pinned;
mod pool;
pub mod probe;
mod raw;
mod region;
mod slots;
mod trial;
mod verdict;
mod words;

/// Restores the default action of signals that libraries of libfabric handle, and returns these
/// signals.
///
/// The libraries of InfiniPath and Omni-Path, which libfabric is linked against on many systems,
/// install handlers when a program is loaded: SIGINT and SIGTERM then end it with code 1,
/// regardless of other handlers, and SIGSEGV is reported as that code. Call this at the start of
/// `main`, before the program installs its own handlers; `onesided::launch` does. The environment
/// variables [`NO_HANDLERS`] also prevent the handlers, if they are set when the program is loaded.
pub fn release_signals() -> Vec<i32> {
    raw::release_signals()
}

pub use tofu2_shm::part::NO_HANDLERS;
pub use {
    atomics::{AtomicKind, Atomics, WordKind},
    domain::Domain,
    endpoint::Endpoint,
    error::{BadName, OfiError, Reply, Result},
    event::{Brought, Event, Failure},
    key::RemoteKey,
    nic::{LinkState, Nic, OfferReport, reports},
    options::{EndpointOptions, GetInto, Limits, PutFrom},
    peer::Peer,
    probe::{Offer, Reason, Wanted, providers},
    rdma_fabric::Amo,
    region::Region,
};
