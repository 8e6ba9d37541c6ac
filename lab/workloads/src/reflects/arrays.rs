//! XcalableMP's arrays.

use super::Dynamics;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::ops::Range;
use xmp_reflect::{Array, NodeSet, Reflect, Transport};

/// One rank's arrays.
pub(super) struct Arrays {
    fabric: Fabric,
    set: NodeSet,
    arrays: Vec<Array<f64>>,
    reflect: Reflect,
    what: Dynamics,
    /// Whether faces are packed and sent as messages.
    packed: bool,
}

impl Arrays {
    pub(super) async fn new(group: Group, what: Dynamics, transport: Transport) -> ProgramResult<Self> {
        let fabric = group.fabric().clone();
        let mapping = what.grid.mapping()?;
        let mut set = NodeSet::new(group, mapping.nodes().clone())?.with_transport(transport);
        // The paper's runtime does not update corners.
        let reflect = Reflect::widths(&what.grid.widths()).orthogonal();
        let mut arrays = Vec::with_capacity(what.variables);
        for _ in 0..what.variables {
            let array = set.array(&mapping)?;
            // Creates the schedule.
            set.explain(&array, &reflect).await?;
            arrays.push(array);
        }
        let packed = transport == Transport::Packed;
        Ok(Arrays { fabric, set, arrays, reflect, what, packed })
    }

    /// Charges the runtime's work before the data transfer.
    async fn begin(&self) {
        self.fabric.charge("xmp.reflect").await;
        if self.packed {
            super::messages::charge(&self.fabric, &["mpi"]).await;
            self.what.fork(&self.fabric).await;
        }
    }

    async fn end(&self) {
        if self.packed {
            self.what.fork(&self.fabric).await;
        }
    }

    pub(super) async fn exchange(&mut self, variable: usize) -> ProgramResult<()> {
        self.begin().await;
        self.set.reflect(&self.arrays[variable], &self.reflect).await?;
        self.end().await;
        Ok(())
    }

    pub(super) async fn start(&mut self, variable: usize) -> ProgramResult<()> {
        self.fabric.charge("xmp.act").await;
        self.begin().await;
        Ok(self.set.reflect_async(&self.arrays[variable], &self.reflect, variable as u64).await?)
    }

    pub(super) async fn wait(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        for _ in variables.clone() {
            self.end().await;
        }
        let ids: Vec<u64> = variables.map(|variable| variable as u64).collect();
        Ok(self.set.wait_async(&ids).await?)
    }
}
