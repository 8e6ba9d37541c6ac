//! The hardware claimed by a communicator.

use super::{Rounds, Staging};
use crate::{Algorithm, Options, Result, collective::Algorithms};
use rdma_fabric::{Fabric, Group, GroupMemory, Multicasts};

/// The hardware that executes a communicator's collectives. Dropping it releases the hardware;
/// members waiting in it are then notified that this one has left.
#[derive(Debug, Default)]
pub(crate) struct Hardware {
    pub(crate) rounds: Option<Rounds>,
    pub(crate) staging: Option<Staging>,
}

impl Hardware {
    /// Allocates the memory for multicasts, which has to be the same region on all members; `None`
    /// if communicators with `members` members (or with any number) do not use multicasts.
    /// Collective over the job.
    pub(crate) async fn memory(
        fabric: &Fabric,
        options: &Options,
        members: Option<usize>,
    ) -> Result<Option<GroupMemory>> {
        let wanted = fabric.caps().multicasts == Multicasts::Hardware
            && options.collectives.table(&fabric.caps()).wants(Algorithm::Multicast, members);
        match wanted {
            true => Ok(Some(GroupMemory::symmetric(fabric, Staging::memory_bytes(options.staging)).await?)),
            false => Ok(None),
        }
    }

    /// Claims the hardware that the table selects, as far as it is free. Collective over the group.
    pub(crate) async fn claim(
        group: &mut Group,
        options: &Options,
        memory: Option<GroupMemory>,
    ) -> Result<(Self, Algorithms)> {
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
        if let Some(memory) = memory
            && wants(Algorithm::Multicast)
            && hardware.rounds.is_some()
        {
            hardware.staging = Staging::new(group, memory, options.staging)?;
        }
        let has = |algorithm| match algorithm {
            Algorithm::Tree => true,
            Algorithm::Gates | Algorithm::Colour => {
                hardware.rounds.as_ref().is_some_and(|rounds| rounds.algorithm() == algorithm)
            }
            Algorithm::Multicast => hardware.staging.is_some(),
        };
        let algorithms = Algorithms::new(&options.collectives, &fabric.caps(), members, has);
        Ok((hardware, algorithms))
    }
}
