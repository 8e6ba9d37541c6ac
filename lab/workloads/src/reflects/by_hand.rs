//! Puts written by hand, with a command for each block, as in the paper's RDMA versions.

use super::{Dynamics, Face, faces};
use fabric_offload::{barrier::Barrier, triggered::put_behind};
use rdma_fabric::{
    Deps, Fabric, Group, LocalSpan, LocalWord, ProgramResult, Rank, Region, RemoteSpan, RemoteWord, op::Put,
};
use std::ops::Range;
use xmp_reflect::Corners;

/// The synchronization of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// Neighbours wait for each other: the receiver reports that its shadow may be overwritten, the
    /// sender that it has been overwritten.
    Neighbours,
    /// All ranks wait for each other, before and after, in the network's barrier unit, as in
    /// XcalableMP's runtime if its barriers use the unit.
    Barriers,
}

/// One rank's puts: a command for each block, or for each face if they are packed.
pub(super) struct ByHand {
    fabric: Fabric,
    /// One entry for each array. The arrays share the memory of the blocks, whose contents are
    /// never read.
    variables: Vec<Variable>,
    barrier: Option<Barrier>,
    _memory: Region,
}

struct Variable {
    outs: Vec<Out>,
    ins: Vec<In>,
    /// The number of the exchange.
    number: u64,
}

/// The puts to a neighbour.
struct Out {
    to: Rank,
    blocks: Vec<(LocalSpan<u8>, RemoteSpan<u8>)>,
    /// The neighbour writes the number of the exchange for which its shadow is free.
    ready: LocalWord<u64>,
    /// Receives the number of the exchange whose blocks have arrived.
    arrived: RemoteWord<u64>,
}

/// The puts from a neighbour.
struct In {
    from: Rank,
    ready: RemoteWord<u64>,
    arrived: LocalWord<u64>,
}

/// The distance in bytes between words that different ranks write.
const LINE: usize = 64;

impl ByHand {
    pub(super) async fn new(mut group: Group, what: &Dynamics, meeting: Meeting, packed: bool) -> ProgramResult<Self> {
        let fabric = group.fabric().clone();
        let [mut sends, receives] = faces(&what.grid, group.me(), &what.grid.widths(), Corners::Orthogonal)?;
        if packed {
            sends.iter_mut().for_each(|face| face.blocks = 1);
        }
        let (most, sides) = (sends.iter().map(|face| face.bytes).max().unwrap_or(0), sends.len());
        // The layout: for each side, the sent and the received data; for each array and side, a
        // word READY and a word ARRIVED.
        let (each, words) = (2 * most, (2 * most * sides).next_multiple_of(LINE));
        let memory = fabric.alloc_symmetric(words + what.variables * sides * 2 * LINE).await?;
        let (mine, at) = (fabric.rank(), |rank, offset: usize| memory.at(rank, offset as u64));
        let word = |face: &Face, variable: usize| words + (variable * sides + face.side) * 2 * LINE;
        let out = |face: &Face, variable: usize| -> ProgramResult<Out> {
            let (to, length) = (group.rank(face.peer)?, face.bytes / face.blocks);
            let spans = |block: usize| -> ProgramResult<_> {
                let start = face.side * each + block * length;
                Ok((memory.span(&fabric, start, length)?, fabric.remote_span(at(to, start + most), length)?))
            };
            let blocks = (0..face.blocks).map(spans).collect::<ProgramResult<_>>()?;
            let ready = fabric.local_word(at(mine, word(face, variable)))?;
            Ok(Out { to, blocks, ready, arrived: fabric.remote_word(at(to, word(face, variable) + LINE))? })
        };
        let inn = |face: &Face, variable: usize| -> ProgramResult<In> {
            let from = group.rank(face.peer)?;
            let ready = fabric.remote_word(at(from, word(face, variable)))?;
            Ok(In { from, ready, arrived: fabric.local_word(at(mine, word(face, variable) + LINE))? })
        };
        let variable = |number: usize| -> ProgramResult<Variable> {
            let outs = sends.iter().map(|face| out(face, number)).collect::<ProgramResult<_>>()?;
            let ins = receives.iter().map(|face| inn(face, number)).collect::<ProgramResult<_>>()?;
            Ok(Variable { outs, ins, number: 0 })
        };
        let variables = (0..what.variables).map(variable).collect::<ProgramResult<_>>()?;
        let barrier = match meeting {
            Meeting::Neighbours => None,
            Meeting::Barriers => Some(Barrier::new(&mut group).await?),
        };
        Ok(ByHand { fabric, variables, barrier, _memory: memory })
    }

    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(super) async fn exchange(&mut self, variable: usize) -> ProgramResult<()> {
        let Some(barrier) = &mut self.barrier else {
            self.start(variable..variable + 1).await?;
            return self.wait(variable..variable + 1).await;
        };
        self.fabric.charge("xmp.reflect").await;
        meet(&self.fabric, barrier).await?;
        for out in &self.variables[variable].outs {
            out.put(&self.fabric).await?;
        }
        self.fabric.flush_all().await?;
        meet(&self.fabric, barrier).await
    }

    /// Returns the total size of an array's faces in bytes.
    pub(super) fn bytes(&self) -> usize {
        let outs = self.variables.first().map_or(&[][..], |variable| &variable.outs);
        outs.iter().flat_map(|out| &out.blocks).map(|(from, _)| from.len()).sum()
    }

    /// Reports that the shadows of all these arrays may be overwritten, before any data, behind
    /// which the READY words would be queued; then puts the blocks.
    pub(super) async fn start(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        self.ready(variables.clone()).await?;
        self.put(variables).await
    }

    /// Reports that the shadows may be overwritten.
    pub(super) async fn ready(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        for Variable { ins, number, .. } in &mut self.variables[variables] {
            *number += 1;
            for inn in ins {
                self.fabric.put_word(&inn.ready, *number).await?;
            }
        }
        Ok(())
    }

    /// Puts the blocks to each neighbour, once its shadow may be overwritten.
    pub(super) async fn put(&self, variables: Range<usize>) -> ProgramResult<()> {
        let fabric = &self.fabric;
        for Variable { outs, number, .. } in &self.variables[variables] {
            for out in outs {
                fabric.wait_until(&out.ready, Deps::One(out.to), |ready| ready >= *number).await?;
                out.put(fabric).await?;
            }
        }
        Ok(())
    }

    /// Reports to the neighbours that their blocks have arrived, and waits for the blocks of all
    /// these arrays.
    pub(super) async fn wait(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        let (fabric, variables) = (&self.fabric, &self.variables[variables]);
        for Variable { outs, number, .. } in variables {
            for out in outs {
                put_behind(fabric, &out.arrived, *number).await?;
            }
        }
        for Variable { ins, number, .. } in variables {
            for inn in ins {
                fabric.wait_until(&inn.arrived, Deps::One(inn.from), |arrived| arrived >= *number).await?;
            }
        }
        Ok(())
    }
}

impl Out {
    /// Posts all blocks.
    async fn put(&self, fabric: &Fabric) -> ProgramResult<()> {
        for (from, to) in &self.blocks {
            // A later flush waits until they have been sent.
            drop(fabric.post(Put { to, from: from.clone(), notice: None }).await?);
        }
        Ok(())
    }
}

/// Waits for all ranks, as `MPI_Barrier` does if hardware provides a barrier.
async fn meet(fabric: &Fabric, barrier: &mut Barrier) -> ProgramResult<()> {
    fabric.charge("mpi").await;
    barrier.start()?;
    Ok(barrier.wait().await?)
}
