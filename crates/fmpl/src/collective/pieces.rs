//! The ends of a multicast broadcast: the message at the root, and its destination at a member.

use crate::{
    Communicator, Result, cost,
    point::{Sink, Source},
};
use core::ops::Range;
use rdma_fabric::{Fabric, LocalSpan, Region};

/// The message of a root.
pub(crate) enum Origin<'a> {
    /// In fabric memory.
    Span(&'a LocalSpan<u8>),
    /// In any memory: each piece is packed.
    Source(&'a mut dyn Source),
}

/// Two buffers into which the pieces of sources are packed in turn; allocated at first use.
///
/// They are separate from the staging buffers: those are also written by the member's own
/// multicasts, which may arrive later than at the other members.
#[derive(Debug, Default)]
pub(super) struct Packing(Option<(Region, [LocalSpan<u8>; PACKED])>);

/// The number of its buffers.
pub(super) const PACKED: usize = 2;

impl Packing {
    /// Returns a buffer of `bytes` bytes.
    fn buffer(&mut self, fabric: &Fabric, turn: usize, bytes: usize) -> Result<&LocalSpan<u8>> {
        let buffers = match self.0.take() {
            Some(buffers) => buffers,
            None => {
                let region = fabric.alloc(PACKED * bytes)?;
                let halves = [region.span(fabric, 0, bytes)?, region.span(fabric, bytes, bytes)?];
                (region, halves)
            }
        };
        Ok(&self.0.insert(buffers).1[turn])
    }

    /// Returns the number of bytes that it has allocated.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |(region, _)| region.len())
    }
}

impl Origin<'_> {
    /// Returns the length of the message.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Origin::Span(span) => span.len(),
            Origin::Source(source) => source.bytes(),
        }
    }

    /// Returns a piece in fabric memory, which is packed into the buffer of this `turn` if the message
    /// is not contiguous there. A buffer has room for `most` bytes.
    pub(super) async fn piece(
        &mut self,
        comm: &Communicator,
        range: Range<usize>,
        packing: &mut Packing,
        (turn, most): (usize, usize),
    ) -> Result<LocalSpan<u8>> {
        let source = match self {
            Origin::Span(span) => return Ok(span.slice(range)?),
            Origin::Source(source) => source,
        };
        if let Some(span) = source.span() {
            return Ok(span.slice(range)?);
        }
        let piece = packing.buffer(&comm.fabric, turn, most)?.slice(0..range.len())?;
        let mut done = 0;
        while done < range.len() {
            let chunk = source.chunk(range.start + done, range.len() - done);
            comm.fabric.write(&*piece.part(done..done + chunk.len())?, chunk)?;
            done += chunk.len();
        }
        comm.fabric.charge_bytes(cost::COPY, range.len()).await;
        Ok(piece)
    }
}

/// The destination of a message.
pub(crate) enum Target<'a> {
    /// In fabric memory.
    Span(&'a LocalSpan<u8>),
    /// In any memory.
    Sink(&'a mut dyn Sink),
}

impl Target<'_> {
    /// Returns the number of bytes for which there is room.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Target::Span(span) => span.len(),
            Target::Sink(sink) => sink.bytes(),
        }
    }

    /// Copies a piece from the beginning of a buffer.
    pub(super) fn fill(&mut self, comm: &Communicator, buffer: &LocalSpan<u8>, range: Range<usize>) -> Result<()> {
        match self {
            Target::Span(span) => copy(&comm.fabric, buffer, &span.slice(range)?),
            Target::Sink(sink) => match sink.span() {
                Some(span) => copy(&comm.fabric, buffer, &span.slice(range)?),
                None => comm.empty(buffer, range.len(), &mut **sink, range.start),
            },
        }
    }
}

/// Copies the beginning of one span of local memory to another.
fn copy(fabric: &Fabric, from: &LocalSpan<u8>, to: &LocalSpan<u8>) -> Result<()> {
    let mut block = [0; 4096];
    for at in (0..to.len()).step_by(block.len()) {
        let end = to.len().min(at + block.len());
        let block = &mut block[..end - at];
        fabric.read(&from.slice(at..end)?, block)?;
        fabric.write(&to.slice(at..end)?, block)?;
    }
    Ok(())
}
