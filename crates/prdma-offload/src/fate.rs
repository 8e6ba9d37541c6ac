//! What became of a neighbour that something failed at.

use crate::{PrdmaError, init::Wires};
use rdma_fabric::{Deps, Fabric, FabricError, join};

/// A command that met a neighbour's memory or queue when these had just gone says so, also to who asks much later: if it is known by now
/// that the neighbour is lost, or has ended, that is the error. `wires` are those of the request that it is an error of.
pub(crate) fn known(fabric: &Fabric, wires: &Wires, error: PrdmaError) -> PrdmaError {
    let Some(rank) = error.gone().filter(|rank| *rank != fabric.rank()) else { return error };
    // Any word of the own memory.
    let Ok(word) = wires.words.region().word::<u64>(fabric, wires.scratch_word() as usize) else { return error };
    // A wait for nothing ends at once where nobody is left who could end it.
    match join::now(fabric.wait_until(&word, Deps::One(rank), |_| false)) {
        Some(Err(fate @ (FabricError::PeerLost { .. } | FabricError::PeersLeft))) => fate.into(),
        _ => error,
    }
}
