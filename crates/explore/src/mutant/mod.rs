//! What breaks a protocol on its way to a fabric.
//!
//! A check proves something only if it can fail. A protocol has no switches for its own mutation; what a mutated line would do differently
//! is seen at the fabric: a flush that is missing, a result that is ignored, a store that comes late. A [`mutant`] does that to
//! every rank alike, on any fabric.

mod atomic;
mod mutation;
mod operation;
mod provider;
mod spoiled;

pub use mutation::Mutation;

use rdma_fabric::Fabric;

/// One rank's `fabric` under one rank's `mutation`. It has nothing armed.
#[must_use]
pub fn mutant(fabric: Fabric, mutation: impl Mutation) -> Fabric {
    fabric.clone().under(spoiled::Spoiled::new(fabric, mutation))
}
