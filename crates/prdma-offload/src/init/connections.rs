//! The memory of a request that does not belong to the program: words of the protocol, and staging
//! memory for packed blocks.

use super::{
    Channel,
    terms::{Agreed, Block},
};
use crate::{
    PrdmaError, Result,
    buffer::{Memory, Width, copy_runs},
    layout::{Layout, Runs},
    packing::Packing,
};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, join};

/// Bytes of the READYs, or ENDs, of channels with one neighbour. Two cache lines, to avoid false
/// sharing between neighbours, and between READYs and ENDs.
const LINE: u64 = 128;
/// Number of channels with one neighbour that share such lines.
const SHARERS: u64 = LINE / 8;

/// Words, and the memory from which each channel sends and into which it receives. A request keeps
/// them as long as its engine, which addresses them.
pub(crate) struct Connections {
    /// READY and END for each channel, then the destination word of puts to oneself.
    pub(crate) words: Memory,
    /// The offset of READY, by channel; END is [`LINE`] bytes further on.
    ready: Vec<u64>,
    /// The offset of the destination word of puts to oneself.
    scratch: u64,
    /// The memory to send from, by channel; for a collective, which has no channels, all memory
    /// that its members address.
    sending: Vec<Option<Memory>>,
    receiving: Vec<Option<Memory>>,
    /// Blocks to pack at start.
    pub(crate) packs: Vec<Staged>,
    /// Blocks to unpack at wait.
    pub(crate) unpacks: Vec<Staged>,
}

/// A block that is contiguous while in flight.
pub(crate) struct Staged {
    /// Its layout in the program's buffer.
    layout: Layout,
    program: Memory,
    staging: Memory,
    /// Its offset in the staging memory.
    start: u64,
}

impl Staged {
    /// Allocates staging memory for the bytes of `block`.
    pub(crate) fn new(fabric: &Fabric, block: &Block) -> Result<Self> {
        let staging = Memory::new(fabric, block.layout.bytes() as usize, block.memory.width())?;
        Ok(Staged::at(block, staging, 0))
    }

    /// Stages `block` in `staging`, starting at byte `start`.
    pub(crate) fn at(block: &Block, staging: Memory, start: u64) -> Self {
        Staged { layout: block.layout, program: block.memory.clone(), staging, start }
    }

    /// Returns the memory of the block while it is in flight.
    pub(crate) fn staging(&self) -> &Memory {
        &self.staging
    }

    /// Returns the block in the form that it has while in flight.
    pub(crate) fn presented(&self) -> Block {
        Block { memory: self.staging.clone(), layout: self.staged() }
    }

    /// Charges the time for packing or unpacking blocks.
    pub(crate) async fn charge(fabric: &Fabric, packing: &Packing, blocks: &[Staged]) {
        packing.cost(blocks.iter().map(|staged| (staged.layout.count(), staged.layout.bytes()))).charge(fabric).await;
    }

    /// Copies the block from the program's buffer to the staging memory.
    pub(crate) fn pack(&self, packing: &Packing) -> Result<()> {
        self.shared(packing, |program, staged| {
            copy_runs((&self.program, &self.layout, program), (&self.staging, &staged, staged.runs()))
        })
    }

    /// Copies the block from the staging memory to the program's buffer.
    pub(crate) fn unpack(&self, packing: &Packing) -> Result<()> {
        self.shared(packing, |program, staged| {
            copy_runs((&self.staging, &staged, staged.runs()), (&self.program, &self.layout, program))
        })
    }

    /// Copies in shares: `copy` receives the runs of a share in the program's buffer, and the same
    /// bytes in the staging memory. The shares are disjoint on both sides.
    fn shared(&self, packing: &Packing, copy: impl Fn(Runs, Layout) -> Result<()> + Sync) -> Result<()> {
        let Layout { run, .. } = self.layout;
        packing.copy(self.layout.count(), self.layout.bytes(), |share| {
            let staged = Layout::range(self.start + share.start * run, (share.end - share.start) * run);
            copy(self.layout.runs_in(share), staged)
        })
    }

    /// Returns the location of the block in the staging memory.
    fn staged(&self) -> Layout {
        Layout::range(self.start, self.layout.bytes())
    }
}

impl Connections {
    /// Allocates words through the handle `words`, and staging memory through `fabric`.
    pub(crate) fn new(
        (fabric, words): (&Fabric, &Fabric),
        channels: &[Channel],
        agreed: &[Agreed],
        sends: &[Block],
        receives: &[Block],
    ) -> Result<Self> {
        let mut connections = Connections::of_channels(words, channels)?;
        for (channel, agreed) in channels.iter().zip(agreed) {
            connections.exchange(fabric, channel, agreed, sends, receives)?;
        }
        Ok(connections)
    }

    /// Packs the blocks to be packed.
    pub(crate) fn pack(&self, packing: &Packing) -> Result<()> {
        self.packs.iter().try_for_each(|staged| staged.pack(packing))
    }

    /// Unpacks the blocks that were received packed.
    pub(crate) fn unpack(&self, packing: &Packing) -> Result<()> {
        self.unpacks.iter().try_for_each(|staged| staged.unpack(packing))
    }

    /// Assigns the next channel the memory of its blocks, or staging memory for those that are
    /// packed.
    pub(crate) fn exchange(
        &mut self,
        fabric: &Fabric,
        channel: &Channel,
        agreed: &Agreed,
        sends: &[Block],
        receives: &[Block],
    ) -> Result<()> {
        let out = channel.out.zip(agreed.out.as_ref()).map(|(end, out)| (&sends[end.slot], out.packed, out.bytes));
        let inn = channel.inn.zip(agreed.inn).map(|(end, inn)| (&receives[end.slot], inn.packed, inn.bytes));
        let sending = side(fabric, out, &mut self.packs)?;
        let receiving = side(fabric, inn, &mut self.unpacks)?;
        self.address(sending, receiving);
        Ok(())
    }

    /// Allocates the words of channels, whose memory must then be [given](Connections::address) in
    /// their order.
    pub(crate) fn of_channels(fabric: &Fabric, channels: &[Channel]) -> Result<Self> {
        // One entry per sixteen channels of a neighbour, in the order of their first channels.
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
        Ok(Connections {
            words: Memory::new(fabric, scratch as usize + 8, Width::Eight)?,
            ready,
            scratch,
            sending: Vec::with_capacity(channels.len()),
            receiving: Vec::with_capacity(channels.len()),
            packs: Vec::new(),
            unpacks: Vec::new(),
        })
    }

    /// Assigns the next channel the memory from which it sends, and into which it receives.
    pub(crate) fn address(&mut self, sending: Option<Memory>, receiving: Option<Memory>) {
        self.sending.push(sending);
        self.receiving.push(receiving);
    }

    /// Allocates the words of a collective, which has no channels, and keeps the other memory that
    /// its members address.
    pub(crate) fn of_words(fabric: &Fabric, words: usize, areas: impl Iterator<Item = Memory>) -> Result<Self> {
        let words = Memory::new(fabric, words * 8, Width::Eight)?;
        let (sending, receiving) = (areas.map(Some).collect(), Vec::new());
        let (packs, unpacks) = (Vec::new(), Vec::new());
        Ok(Connections { words, ready: Vec::new(), scratch: 0, sending, receiving, packs, unpacks })
    }

    /// Returns the memory from which a channel's block is sent; `None` if it sends none.
    pub(crate) fn sending(&self, channel: &Channel) -> Option<&Memory> {
        self.sending[channel.place].as_ref()
    }

    /// Returns the memory into which a channel's block is received; `None` if it receives none.
    pub(crate) fn receiving(&self, channel: &Channel) -> Option<&Memory> {
        self.receiving[channel.place].as_ref()
    }

    /// Returns the offset of the word that the channel's receiver writes when it is ready.
    pub(crate) fn ready_word(&self, channel: &Channel) -> u64 {
        self.ready[channel.place]
    }

    /// Returns the offset of the word that the channel's sender writes when the data have arrived.
    pub(crate) fn end_word(&self, channel: &Channel) -> u64 {
        self.ready[channel.place] + LINE
    }

    /// Returns this member's word in which the channel's sender reports END.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(crate) fn end(&self, channel: &Channel) -> Result<LocalWord<u64>> {
        self.words.word(self.end_word(channel))
    }

    /// If a command failed because it accessed memory or queues that no longer exist, turns the
    /// error into the loss of that neighbour, or the end of all neighbours, if either is known by
    /// now. Any other `error` is returned unchanged.
    pub(crate) fn name_loss(&self, fabric: &Fabric, error: PrdmaError) -> PrdmaError {
        let Some(rank) = error.gone().filter(|rank| *rank != fabric.rank()) else { return error };
        // Any word of local memory.
        let Ok(word) = self.words.word(self.scratch) else { return error };
        // A wait whose condition never holds ends immediately if no rank is left that could satisfy
        // it.
        match join::now(fabric.wait_until(&word, Deps::One(rank), |_| false)) {
            Some(Err(loss @ (FabricError::PeerLost { .. } | FabricError::PeersLeft))) => loss.into(),
            _ => error,
        }
    }

    /// Returns the offset of a word whose content is never read.
    pub(crate) fn scratch_word(&self) -> u64 {
        self.scratch
    }
}

/// Returns the memory of an edge: the program's or, if its block is packed, staging memory.
fn side(
    fabric: &Fabric,
    edge: Option<(&Block, Option<Layout>, u64)>,
    staged: &mut Vec<Staged>,
) -> Result<Option<Memory>> {
    match edge {
        None => Ok(None),
        Some((block, None, _)) => Ok(Some(block.memory.clone())),
        Some((block, Some(layout), bytes)) => {
            let staging = Memory::new(fabric, bytes as usize, block.memory.width())?;
            staged.push(Staged::at(&Block { memory: block.memory.clone(), layout }, staging.clone(), 0));
            Ok(Some(staging))
        }
    }
}
