//! The hardware claimed by a communicator, and the memory of algorithms other than the tree.

use super::{Rounds, Staging, boxes::Boxes, central::Central};
use crate::{Algorithm, Choice, Options, Result, collective::Algorithms};
use rdma_fabric::{Atomics, Fabric, Group, GroupMemory, Multicasts};

/// The hardware and the memory by which a communicator's collectives are executed. Dropping it releases the hardware;
/// members waiting in it are then notified that this one has left.
#[derive(Debug, Default)]
pub(crate) struct Hardware {
    pub(crate) rounds: Option<Rounds>,
    // Most communicators have none of these, which are large.
    pub(crate) staging: Option<Box<Staging>>,
    pub(crate) boxes: Option<Box<Boxes>>,
    pub(crate) central: Option<Box<Central>>,
}

/// Memory for multicasts and counters, which has to be the same region on all members.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    staging: Option<GroupMemory>,
    boxes: Option<GroupMemory>,
    central: Option<GroupMemory>,
}

impl Hardware {
    /// Does not notify members that may wait at the counter when it is dropped.
    pub(crate) fn silence(&mut self) {
        self.central.iter_mut().for_each(|central| central.silence());
    }

    /// Allocates the memory for multicasts, as far as communicators with `members` members (or with any
    /// number) use them. Collective over the job.
    pub(crate) async fn memory(fabric: &Fabric, options: &Options, members: Option<usize>) -> Result<Memories> {
        let caps = fabric.caps();
        let table = options.collectives.table(&caps);
        let in_hardware = caps.multicasts == Multicasts::Hardware;
        // A program's own table may select it where the CPU multicasts.
        let in_boxes =
            in_hardware || caps.multicasts == Multicasts::Software && matches!(options.collectives, Choice::By(_));
        let mut memories = Memories::default();
        if in_hardware && table.wants(Algorithm::Multicast, members) {
            let bytes = Staging::memory_bytes(options.staging);
            memories.staging = Some(GroupMemory::symmetric(fabric, bytes).await?);
        }
        if in_boxes && table.wants(Algorithm::Mixed, members) {
            memories.boxes = Some(Boxes::memory(fabric).await?);
        }
        // A program may create thousands of communicators, and a rank has a limited number of regions.
        if members.is_some() && caps.atomics != Atomics::None && table.wants(Algorithm::Central, members) {
            memories.central = Some(Central::memory(fabric).await?);
        }
        Ok(memories)
    }

    /// Claims the hardware that the table selects, as far as it is free. Collective over the group.
    pub(crate) async fn claim(group: &mut Group, options: &Options, memories: Memories) -> Result<(Self, Algorithms)> {
        let (fabric, members) = (group.fabric().clone(), group.len());
        let table = options.collectives.table(&fabric.caps());
        let wants = |algorithm| table.wants(algorithm, Some(members));
        let mut hardware = Hardware::default();
        if wants(Algorithm::Gates) {
            hardware.rounds = Rounds::by_gates(group).await?;
        }
        if hardware.rounds.is_none() && (wants(Algorithm::Colour) || wants(Algorithm::Multicast)) {
            hardware.rounds = Rounds::by_colour(group).await?;
        }
        if let Some(memory) = memories.staging
            && wants(Algorithm::Multicast)
            && hardware.rounds.is_some()
        {
            hardware.staging = Staging::new(group, memory, options.staging)?.map(Box::new);
        }
        if let Some(memory) = memories.boxes
            && wants(Algorithm::Mixed)
            && hardware.rounds.is_none()
        {
            hardware.boxes = Boxes::new(group, memory)?.map(Box::new);
        }
        if let Some(memory) = memories.central
            && wants(Algorithm::Central)
        {
            hardware.central = Central::new(group, memory).await?.map(Box::new);
        }
        let has = |algorithm| match algorithm {
            Algorithm::Tree => true,
            Algorithm::Gates | Algorithm::Colour => {
                hardware.rounds.as_ref().is_some_and(|rounds| rounds.algorithm() == algorithm)
            }
            Algorithm::Multicast => hardware.staging.is_some(),
            Algorithm::Mixed => hardware.boxes.is_some(),
            Algorithm::Central => hardware.central.is_some(),
        };
        let algorithms = Algorithms::new(&options.collectives, &fabric.caps(), members, has);
        Ok((hardware, algorithms))
    }
}
