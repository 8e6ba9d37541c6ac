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

/// Bytes of a channel's words: READY and END.
const CHANNEL: u64 = 16;

/// Words, and the memory that each channel sends from and receives in.
pub(crate) struct Wires<F: Fabric> {
    /// For each channel READY and END, then a word that puts to oneself touch.
    pub(crate) words: Memory<F>,
    channels: u64,
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

    /// `block`, packed at the start of `staging`.
    pub(crate) fn at(block: &Block<F>, staging: Memory<F>) -> Self {
        Staged { layout: block.layout, program: block.memory.clone(), staging }
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
        let bytes = channels.len() as u64 * CHANNEL + 8;
        let mut wires = Wires {
            words: Memory::new(fabric, bytes as usize, Width::Eight)?,
            channels: channels.len() as u64,
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

    /// Words of a collective, and no channels.
    pub(crate) fn of_words(fabric: &F, words: usize) -> Result<Self> {
        let words = Memory::new(fabric, words * 8, Width::Eight)?;
        let (none, channels) = (Vec::new, 0);
        Ok(Wires { words, channels, sending: none(), receiving: none(), packs: Vec::new(), unpacks: Vec::new() })
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
        channel.place as u64 * CHANNEL
    }

    /// Offset of the word that the channel's sender writes when the data are there.
    pub(crate) fn end_word(&self, channel: &Channel) -> u64 {
        channel.place as u64 * CHANNEL + 8
    }

    /// Offset of a word that means nothing.
    pub(crate) fn scratch_word(&self) -> u64 {
        self.channels * CHANNEL
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
