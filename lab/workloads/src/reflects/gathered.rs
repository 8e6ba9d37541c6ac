//! Persistent messages of derived datatypes whose blocks are gathered and scattered by the message
//! layer itself.
//!
//! The layer gathers short blocks into fragments, and sends each fragment as soon as it is full,
//! while it gathers the next one; the receiver's layer scatters them as they arrive. One thread
//! does this, since the layer has no access to other threads. A block that fills a fragment by
//! itself is sent without a copy.

use super::{Dynamics, Face, datatype, faces};
use rdma_fabric::{
    Deps, Fabric, Group, LocalSpan, LocalWord, ProgramResult, Rank, Region, RemoteSpan, RemoteWord, op::Put,
};
use std::ops::Range;
use xmp_reflect::Corners;

/// The maximum size of a fragment in bytes, unless it is a single block.
const FRAGMENT: usize = 16 << 10;

/// One rank's messages.
pub(super) struct Gathered {
    fabric: Fabric,
    /// One entry for each array.
    variables: Vec<Variable>,
    /// The number of faces of a block. The data of a notice is `array × sides + side`.
    sides: usize,
    _memory: Region,
}

struct Variable {
    outs: Vec<Out>,
    /// One entry for each side.
    ins: Vec<In>,
    /// The number of the exchange.
    number: u64,
}

/// The messages to a neighbour.
struct Out {
    to: Rank,
    fragments: Vec<(LocalSpan<u8>, RemoteSpan<u8>, Fragment)>,
    /// The neighbour writes the number of the exchange whose fragments it can accept.
    ready: LocalWord<u64>,
    /// The data of the notices of its fragments.
    notice: u64,
}

/// A part of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fragment {
    bytes: usize,
    /// The number of copied blocks; 0 if the fragment is one block that is not copied.
    blocks: usize,
}

/// The messages from a neighbour.
struct In {
    ready: RemoteWord<u64>,
    fragments: Vec<Fragment>,
    /// The number of fragments that have arrived, over all exchanges.
    arrived: u64,
}

/// The distance in bytes between words that different ranks write.
const LINE: usize = 64;

impl Gathered {
    pub(super) async fn new(group: Group, what: &Dynamics) -> ProgramResult<Self> {
        let fabric = group.fabric().clone();
        let [sends, mut receives] = faces(&what.grid, group.me(), &what.grid.widths(), Corners::Orthogonal)?;
        receives.sort_by_key(|face| face.side);
        let most = sends.iter().map(|face| face.bytes).max().unwrap_or(0).next_multiple_of(LINE);
        // The layout: for each side, the sender's fragments and the receiver's; for each array and
        // side, a word READY.
        let (words, sides) = (sends.len() * 2 * most, sends.len());
        let memory = fabric.alloc_symmetric(words + what.variables * sides * LINE).await?;
        let word = |variable: usize, face: &Face| (words + (variable * sides + face.side) * LINE) as u64;
        let mut variables = Vec::with_capacity(what.variables);
        for variable in 0..what.variables {
            let out = |face: &Face| -> ProgramResult<Out> {
                let to = group.rank(face.peer)?;
                let mut start = face.side * 2 * most;
                let mut fragments = Vec::new();
                for fragment in cut(face) {
                    let there = fabric.remote_span(memory.at(to, (start + most) as u64), fragment.bytes)?;
                    fragments.push((memory.span(&fabric, start, fragment.bytes)?, there, fragment));
                    start += fragment.bytes;
                }
                let ready = fabric.local_word(memory.at(fabric.rank(), word(variable, face)))?;
                Ok(Out { to, fragments, ready, notice: (variable * sides + face.side) as u64 })
            };
            let inn = |face: &Face| -> ProgramResult<In> {
                let ready = fabric.remote_word(memory.at(group.rank(face.peer)?, word(variable, face)))?;
                Ok(In { ready, fragments: cut(face), arrived: 0 })
            };
            let outs = sends.iter().map(out).collect::<ProgramResult<_>>()?;
            variables.push(Variable { outs, ins: receives.iter().map(inn).collect::<ProgramResult<_>>()?, number: 0 });
        }
        Ok(Gathered { fabric, variables, sides, _memory: memory })
    }

    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Reports that the fragments of these arrays can be received, then gathers and sends this
    /// rank's own fragments.
    pub(super) async fn start(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        let fabric = &self.fabric;
        for Variable { ins, number, .. } in &mut self.variables[variables.clone()] {
            *number += 1;
            for inn in ins {
                fabric.put_word(&inn.ready, *number).await?;
            }
        }
        for Variable { outs, number, .. } in &self.variables[variables] {
            datatype(fabric).await;
            for out in outs {
                for (from, to, fragment) in &out.fragments {
                    fragment.copy(fabric).await;
                    fabric.wait_until(&out.ready, Deps::One(out.to), |ready| ready >= *number).await?;
                    drop(fabric.post(Put { to, from: from.clone(), notice: Some(out.notice) }).await?);
                }
            }
        }
        Ok(())
    }

    /// Scatters arriving fragments, until all of these arrays have arrived.
    pub(super) async fn wait(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        for variable in variables {
            while self.variables[variable].is_waiting() {
                let notice = self.fabric.next_notice(Deps::All).await?;
                let about = notice.data as usize;
                let Variable { ins, .. } = &mut self.variables[about / self.sides];
                let inn = &mut ins[about % self.sides];
                inn.fragments[(inn.arrived % inn.fragments.len() as u64) as usize].copy(&self.fabric).await;
                inn.arrived += 1;
            }
        }
        Ok(())
    }
}

impl Variable {
    fn is_waiting(&self) -> bool {
        self.ins.iter().any(|inn| inn.arrived < self.number * inn.fragments.len() as u64)
    }
}

impl Fragment {
    /// Charges gathering, or scattering, by one thread.
    async fn copy(self, fabric: &Fabric) {
        if self.blocks > 0 {
            for _ in 0..self.blocks {
                fabric.charge("mpi.block").await;
            }
            fabric.charge_bytes("pack", self.bytes).await;
        }
    }
}

/// Splits a face into fragments; a block that two fragments share counts for both.
fn cut(face: &Face) -> Vec<Fragment> {
    let length = face.bytes / face.blocks;
    if length >= FRAGMENT {
        return vec![Fragment { bytes: length, blocks: 0 }; face.blocks];
    }
    let starts = (0..face.bytes).step_by(FRAGMENT);
    starts
        .map(|start| {
            let end = face.bytes.min(start + FRAGMENT);
            Fragment { bytes: end - start, blocks: end.div_ceil(length) - start / length }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_blocks_share_fragments_and_long_ones_go_alone() {
        let face = |bytes, blocks| Face { peer: 0, side: 0, bytes, blocks };
        let fragments = cut(&face(16 * 2064, 16));
        let bytes: usize = fragments.iter().map(|fragment| fragment.bytes).sum();
        let blocks: usize = fragments.iter().map(|fragment| fragment.blocks).sum();
        assert_eq!((fragments.len(), bytes, blocks), (3, 16 * 2064, 16 + 2), "two blocks are cut");
        assert_eq!(cut(&face(2 * 16_512, 2)), [Fragment { bytes: 16_512, blocks: 0 }; 2]);
    }
}
