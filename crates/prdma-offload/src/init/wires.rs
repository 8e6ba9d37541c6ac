//! The memory of a request that is not the program's: words of the protocol, and where packed blocks wait.

use super::{
    Channel,
    terms::{Agreed, Block},
};
use crate::{
    Result,
    buffer::{Memory, Width},
    layout::Layout,
};
use rdma_fabric::Fabric;

/// Bytes of the READYs, or ENDs, of channels with one neighbour. Two cache lines: neighbours don't disturb each other, nor READYs ENDs.
const LINE: u64 = 128;
/// Channels with one neighbour that share such lines.
const SHARERS: u64 = LINE / 8;

/// Words, and the memory that each channel sends from and receives in. A request has them as long as its engine, which addresses them.
pub(crate) struct Wires<F: Fabric> {
    /// For each channel READY and END, then a word that puts to oneself touch.
    pub(crate) words: Memory<F>,
    /// Where READY is, by channel; END is [`LINE`] bytes further.
    ready: Vec<u64>,
    /// Where that word is.
    scratch: u64,
    /// By channel; of a collective, which has no channels, all that its members address.
    sending: Vec<Option<Memory<F>>>,
    receiving: Vec<Option<Memory<F>>>,
    /// Blocks to pack at start.
    pub(crate) packs: Vec<Staged<F>>,
    /// Blocks to unpack at wait.
    pub(crate) unpacks: Vec<Staged<F>>,
}

/// A block that is contiguous while it is under way.
pub(crate) struct Staged<F: Fabric> {
    /// Where it is in the program's buffer.
    layout: Layout,
    program: Memory<F>,
    staging: Memory<F>,
}

impl<F: Fabric> Staged<F> {
    /// Memory for the bytes of `block`.
    pub(crate) fn new(fabric: &F, block: &Block<F>) -> Result<Self> {
        let staging = Memory::new(fabric, block.layout.bytes() as usize, block.memory.width())?;
        Ok(Staged { layout: block.layout, program: block.memory.clone(), staging })
    }

    /// Where they are while under way.
    pub(crate) fn staging(&self) -> &Memory<F> {
        &self.staging
    }

    /// From the program's buffer.
    pub(crate) fn pack(&self, scratch: &mut Vec<u8>) -> Result<()> {
        self.program.gather(&self.layout, scratch)?;
        self.staging.scatter(&Layout::first(scratch.len() as u64), scratch)
    }

    /// To the program's buffer.
    pub(crate) fn unpack(&self, scratch: &mut Vec<u8>) -> Result<()> {
        self.staging.gather(&Layout::first(self.layout.bytes()), scratch)?;
        self.program.scatter(&self.layout, scratch)
    }
}

impl<F: Fabric> Wires<F> {
    pub(crate) fn new(
        fabric: &F,
        channels: &[Channel],
        agreed: &[Agreed],
        sends: &[Block<F>],
        receives: &[Block<F>],
    ) -> Result<Self> {
        // Neighbours, sixteen channels each, in the order in which they come.
        let mut lines: Vec<(usize, u64)> = Vec::new();
        let mut ready = |channel: &Channel| {
            let sharers = (channel.member, u64::from(channel.index) / SHARERS);
            let line = lines.iter().position(|known| *known == sharers).unwrap_or_else(|| {
                lines.push(sharers);
                lines.len() - 1
            });
            line as u64 * 2 * LINE + u64::from(channel.index) % SHARERS * 8
        };
        let ready: Vec<u64> = channels.iter().map(&mut ready).collect();
        let scratch = lines.len() as u64 * 2 * LINE;
        let mut wires = Wires {
            words: Memory::new(fabric, scratch as usize + 8, Width::Eight)?,
            ready,
            scratch,
            sending: Vec::with_capacity(channels.len()),
            receiving: Vec::with_capacity(channels.len()),
            packs: Vec::new(),
            unpacks: Vec::new(),
        };
        for (channel, agreed) in channels.iter().zip(agreed) {
            let out = channel.out.zip(agreed.out.as_ref()).map(|(end, out)| (&sends[end.slot], out.packed, out.bytes));
            let inn = channel.inn.zip(agreed.inn).map(|(end, inn)| (&receives[end.slot], inn.packed, inn.bytes));
            let memory = side(fabric, out, &mut wires.packs)?;
            wires.sending.push(memory);
            let memory = side(fabric, inn, &mut wires.unpacks)?;
            wires.receiving.push(memory);
        }
        Ok(wires)
    }

    /// Words of a collective and the other memory that its members address; no channels.
    pub(crate) fn of_words(fabric: &F, words: usize, areas: impl Iterator<Item = Memory<F>>) -> Result<Self> {
        let words = Memory::new(fabric, words * 8, Width::Eight)?;
        let (sending, receiving) = (areas.map(Some).collect(), Vec::new());
        let (packs, unpacks) = (Vec::new(), Vec::new());
        Ok(Wires { words, ready: Vec::new(), scratch: 0, sending, receiving, packs, unpacks })
    }

    /// What a channel's block is sent from; `None` if it sends none.
    pub(crate) fn sending(&self, channel: &Channel) -> Option<&Memory<F>> {
        self.sending[channel.place].as_ref()
    }

    /// What it is received in; `None` if it receives none.
    pub(crate) fn receiving(&self, channel: &Channel) -> Option<&Memory<F>> {
        self.receiving[channel.place].as_ref()
    }

    /// Offset of the word that the channel's receiver writes when it is ready.
    pub(crate) fn ready_word(&self, channel: &Channel) -> u64 {
        self.ready[channel.place]
    }

    /// Offset of the word that the channel's sender writes when the data are there.
    pub(crate) fn end_word(&self, channel: &Channel) -> u64 {
        self.ready[channel.place] + LINE
    }

    /// Offset of a word that means nothing.
    pub(crate) fn scratch_word(&self) -> u64 {
        self.scratch
    }
}

/// The memory of an edge: the program's, or, if its block is packed, memory of its own.
fn side<F: Fabric>(
    fabric: &F,
    edge: Option<(&Block<F>, Option<Layout>, u64)>,
    staged: &mut Vec<Staged<F>>,
) -> Result<Option<Memory<F>>> {
    match edge {
        None => Ok(None),
        Some((block, None, _)) => Ok(Some(block.memory.clone())),
        Some((block, Some(layout), bytes)) => {
            let staging = Memory::new(fabric, bytes as usize, block.memory.width())?;
            staged.push(Staged { layout, program: block.memory.clone(), staging: staging.clone() });
            Ok(Some(staging))
        }
    }
}
