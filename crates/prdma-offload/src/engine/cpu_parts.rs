//! Parts of blocks put by calls of this member, each as soon as it is marked and its receiver is ready.
//!
//! As in the [engine](super::CpuEngine), with one READY for an edge and one END for each part of it.

use super::{
    Desk, Engine, Progress,
    cpu::{all_heard, have_come, say},
    desk::Ends,
};
use crate::{
    Result,
    init::{Agreed, Channel, Wires},
};
use rdma_fabric::{Fabric, LocalWord, Rank, RemoteSpan, triggered::TriggeredPuts};
use std::sync::{Mutex, PoisonError};

/// Parts to send, and edges to say READY for.
pub(crate) struct CpuParts {
    fabric: Fabric,
    /// In the order of the channels that send.
    outs: Vec<Mutex<TriggeredPuts>>,
    /// Where READYs go: one for each edge that is received along.
    readies: Vec<RemoteSpan<u64>>,
    /// What ends an iteration: one word for each part that is received.
    ends: Vec<LocalWord<u64>>,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

impl CpuParts {
    /// Of channels that are parts, `parts` of an edge one after the other. `theirs` are the neighbours' desks, by channel.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn new(
        fabric: &Fabric,
        parts: usize,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires,
        theirs: &[Desk],
    ) -> Result<Self> {
        let (mut outs, mut readies, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let ranks: Box<[Rank]> = channels.iter().map(|channel| channel.rank).collect();
        for (at, ((channel, agreed), desk)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let edge = Ends { fabric, channel, desk, wires };
            if agreed.inn.is_some() {
                ends.push(edge.end()?);
                if at % parts == 0 {
                    readies.push(edge.ready()?);
                }
            }
            if let Some(put) = edge.put(&channels[at - at % parts], agreed, Vec::new())? {
                outs.push(Mutex::new(TriggeredPuts::new(fabric, vec![put], &ranks)));
            }
        }
        Ok(CpuParts { fabric: fabric.clone(), outs, readies, ends, ranks })
    }

    /// Arm part `at`: it leaves when its receiver is ready. Once in an iteration.
    pub(crate) fn arm(&self, at: usize, iteration: u64) {
        self.outs[at].lock().unwrap_or_else(PoisonError::into_inner).leave(iteration);
    }

    fn outs(&mut self) -> impl Iterator<Item = &mut TriggeredPuts> {
        self.outs.iter_mut().map(|out| out.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For parts that are all [armed](CpuParts::arm).
impl Engine for CpuParts {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        say(&self.fabric, &self.readies, iteration).await
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        for out in self.outs() {
            out.wait().await?;
        }
        all_heard(&self.fabric, &self.ends, &self.ranks, iteration).await
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        let fabric = self.fabric.clone();
        let put = fabric.triggers().test(self.outs()).await?;
        Ok(if put { have_come(&self.fabric, &self.ends, iteration)? } else { Progress::Pending })
    }
}
