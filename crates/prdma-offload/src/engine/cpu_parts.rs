//! Parts of blocks put by calls of this member, each as soon as its receiver is ready.
//!
//! As in the [engine](super::CpuEngine), with one READY for an edge and one END for each part of it.

use super::{
    Desk,
    cpu::{Blocks, any, tell_behind},
};
use crate::{
    Result,
    init::{Agreed, Channel, Wires},
};
use rdma_fabric::{Deps, Fabric, LocalWord, Rank, RegionAccess, RegionKey, RemoteAddr, RemoteWord, join};

/// Parts to send, and edges to say READY for.
pub(crate) struct CpuParts<F: Fabric> {
    fabric: F,
    /// In the order of the channels that send.
    outs: Vec<Out<F>>,
    /// Where READYs go: one for each edge that is received along.
    readies: Vec<RemoteWord<F, u64>>,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

/// A part to send.
struct Out<F: Fabric> {
    to: Rank,
    /// Here the receiver says READY, for all parts of the edge.
    ready: LocalWord<F, u64>,
    blocks: Blocks<F>,
    /// There goes END.
    end: RemoteWord<F, u64>,
}

impl<F: Fabric> CpuParts<F> {
    /// Of channels that are parts, `parts` of an edge one after the other. `theirs` are the neighbours' desks, by channel.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn new(
        fabric: &F,
        parts: usize,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires<F>,
        theirs: &[Desk],
    ) -> Result<Self> {
        let (mut outs, mut readies) = (Vec::new(), Vec::new());
        for (at, ((channel, agreed), desk)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let first = &channels[at - at % parts];
            let there =
                |region: u64, offset| RemoteAddr { rank: channel.rank, region: RegionKey::from_bits(region), offset };
            if agreed.inn.is_some() && at % parts == 0 {
                readies.push(fabric.remote_word(there(desk.words, desk.ready))?);
            }
            if let Some(out) = &agreed.out {
                let from = wires.sending(channel).unwrap_or(&wires.words);
                outs.push(Out {
                    to: channel.rank,
                    ready: wires.words.region().word(fabric, wires.ready_word(first) as usize)?,
                    blocks: Blocks::new(fabric, out, from, there(desk.data, 0))?,
                    end: fabric.remote_word(there(desk.words, desk.end))?,
                });
            }
        }
        let ranks = channels.iter().map(|channel| channel.rank).collect();
        Ok(CpuParts { fabric: fabric.clone(), outs, readies, ranks })
    }

    /// Say READY along every edge.
    pub(crate) async fn start(&self, iteration: u64) -> Result<()> {
        let said = join::join_all(self.readies.iter().map(|word| self.fabric.put_word(word, iteration))).await;
        for said in said {
            said?;
        }
        Ok(())
    }

    /// Whether the receiver of part `at` is ready.
    pub(crate) fn may_send(&self, at: usize, iteration: u64) -> Result<bool> {
        Ok(self.fabric.load(&self.outs[at].ready)? >= iteration)
    }

    /// Send part `at`, and tell of its end. To send it again does no harm as long as the iteration lasts.
    pub(crate) async fn send(&self, at: usize, iteration: u64) -> Result<()> {
        let out = &self.outs[at];
        out.blocks.put(&self.fabric).await?;
        tell_behind(&self.fabric, out.to, &out.end, iteration).await
    }

    /// Wait until the receiver of one of the parts is ready.
    pub(crate) async fn any_ready(&self, late: &[usize], iteration: u64) -> Result<()> {
        let words: Vec<_> = late.iter().map(|at| &self.outs[*at].ready).collect();
        any(&self.fabric, &words, Deps::Ranks(&self.ranks), iteration).await
    }

    /// Wait until a part that is received has come.
    pub(crate) async fn arrival(&self, end: &LocalWord<F, u64>, iteration: u64) -> Result<()> {
        if self.fabric.load(end)? < iteration {
            self.fabric.wait_until(end, Deps::Ranks(&self.ranks), |end| end >= iteration).await?;
        }
        Ok(())
    }
}
