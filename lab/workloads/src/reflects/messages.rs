//! Messages written by hand.

use super::{ByHand, Dynamics, FACES, Meeting};
use rdma_fabric::{Fabric, Group, ProgramResult};

/// One rank's messages with its four neighbours. Each exchange posts receives, packs and sends
/// faces, and unpacks the received ones; requests are not persistent.
///
/// A receive notifies the sender that its memory is free, and the sender puts the packed face
/// there, as MPI libraries do with messages of this length. The additional costs of MPI are
/// charged.
pub(super) struct Messages {
    fabric: Fabric,
    puts: ByHand,
    /// The size of all faces of an array in bytes.
    bytes: usize,
    what: Dynamics,
}

impl Messages {
    pub(super) async fn new(group: Group, what: Dynamics) -> ProgramResult<Self> {
        let fabric = group.fabric().clone();
        let puts = ByHand::new(group, &what, Meeting::Neighbours, true).await?;
        let bytes = puts.bytes();
        Ok(Messages { fabric, puts, bytes, what })
    }

    pub(super) async fn exchange(&mut self, variable: usize) -> ProgramResult<()> {
        charge(&self.fabric, &["mpi", "mpi.setup"]).await;
        self.puts.ready(variable..variable + 1).await?;
        self.copy().await;
        self.puts.put(variable..variable + 1).await?;
        self.puts.wait(variable..variable + 1).await?;
        self.copy().await;
        Ok(())
    }

    /// Charges packing, or unpacking, an array's faces.
    async fn copy(&self) {
        self.what.fork(&self.fabric).await;
        self.fabric.charge_bytes("pack", self.bytes).await;
    }
}

/// Charges these layers for a send and a receive of each face.
pub(super) async fn charge(fabric: &Fabric, layers: &[&'static str]) {
    for _ in 0..2 * FACES {
        for layer in layers {
            fabric.charge(layer).await;
        }
    }
}
