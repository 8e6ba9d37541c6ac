//! Channels of which some forward what came along others, without queues.

use super::{Acting, ActingEngine, Desk, Edges, Transfer};
use crate::{
    Result,
    init::{Agreed, Channel, Wires},
};
use rdma_fabric::{Fabric, Rank, RegionAccess, RegionKey, RemoteAddr};

impl<F: Fabric> ActingEngine<F> {
    /// READYs that need nothing, and data that need the READY of their receiver and the ends of what feeds their relay. `theirs` are the neighbours'
    /// desks, by channel; `relays` says what each channel forwards, and who can hold them up.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn relaying(
        fabric: &F,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires<F>,
        theirs: &[Desk],
        (edges, ranks): (&[Edges], Box<[Rank]>),
    ) -> Result<Self> {
        let words = wires.words.region();
        let end = |channel: &Channel| words.word::<u64>(fabric, wires.end_word(channel) as usize);
        let there = |channel: &Channel, region: u64, offset| RemoteAddr {
            rank: channel.rank,
            region: RegionKey::from_bits(region),
            offset,
        };
        let (mut readies, mut acts, mut finally) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ((channel, agreed), desk)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let act = |needs, transfer, offset| -> Result<_> {
                let word = fabric.remote_word(there(channel, desk.words, offset))?;
                Ok(Acting { needs, transfer, to: channel.rank, word, done: 0 })
            };
            if agreed.inn.is_some() {
                readies.push(act(Vec::new(), None, desk.ready)?);
                finally.push(end(channel)?);
            }
            if let Some(out) = &agreed.out {
                let mut needs = vec![words.word(fabric, wires.ready_word(channel) as usize)?];
                for (fed, edges_of) in channels.iter().zip(edges) {
                    if edges_of.feeds() && edges_of.relay == edges[at].relay {
                        needs.push(end(fed)?);
                    }
                }
                let from = wires.sending(channel).unwrap_or(&wires.words);
                let transfer = Transfer::new(fabric, out, from, there(channel, desk.data, 0))?;
                acts.push(act(needs, Some(transfer), desk.end)?);
            }
        }
        // Who waits for a READY is not kept waiting by data.
        readies.append(&mut acts);
        Ok(ActingEngine { fabric: fabric.clone(), acts: readies, finally, ranks })
    }
}
