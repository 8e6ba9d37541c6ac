//! The engine without control queues: words are put, and puts wait for words, in calls of this
//! member.
//!
//! An exchange is PRDMA as in its paper:
//! ```text
//! receiver's start : R1  put k to the sender's word             READY(k)
//! sender           : S1  its word is k   S2  put the data   S3  put k to the receiver's word, after the data    END(k)
//! receiver's wait  : R2  its word is k
//! ```
//! S1 is checked by any later wait of this member ([`fabric_offload::triggered`]), so a late neighbour
//! does not delay any other, and requests may be waited for in any order. With a boolean instead of
//! k, a sender that checks late could take the READY of iteration k for that of k + 1.
//!
//! A collective has no R1: its puts wait for puts of other members.
//!
//! # Source
//! Y. Ishikawa et al., Revisiting persistent communication in MPI (EuroMPI 2012); M. Hatanaka et
//! al. (EuroMPI 2013).

use super::{CpuContact, Demand, Engine, Progress, Result, contact::CpuChannel};
use crate::init::{Agreed, Channel, Connections, Handles};
use fabric_offload::{
    Triggers,
    triggered::{TriggeredPut, TriggeredPuts},
};
use rdma_fabric::{Fabric, LocalWord, Rank, Refused, RemoteSpan, op::Put};
use std::sync::{Mutex, PoisonError};

/// Iterations executed in calls of this member.
pub(crate) struct CpuEngine {
    fabric: Fabric,
    /// The words to which READYs are put at start: one for each incoming edge.
    readies: Vec<RemoteSpan<u64>>,
    puts: TriggeredPuts,
    /// The words that end an iteration, once all puts have been issued.
    ends: Vec<LocalWord<u64>>,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

impl CpuEngine {
    /// Makes an engine from words that start puts to, puts, and words that end an iteration; all
    /// receive the iteration's number. Waits depend on `ranks`.
    pub(crate) fn new(
        fabric: &Fabric,
        readies: Vec<RemoteSpan<u64>>,
        puts: Vec<TriggeredPut>,
        ends: Vec<LocalWord<u64>>,
        ranks: Box<[Rank]>,
    ) -> Self {
        CpuEngine { fabric: fabric.clone(), readies, puts: TriggeredPuts::new(fabric, puts, &ranks), ends, ranks }
    }

    /// Makes the engine of an exchange, once the neighbours' contacts are known: `theirs`, by
    /// channel. Channels to and from one neighbour share a READY and an END, those of the first of
    /// them: both ends number them in the same way. `relays` holds the demand of each channel and
    /// the ranks that can delay the exchange; with it, data also need the ENDs of the inputs of
    /// their relay.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(crate) fn exchange(
        (fabric, handles): (&Fabric, &Handles),
        channels: &[Channel],
        agreed: &[Agreed],
        connections: &Connections,
        theirs: &[CpuContact],
        relays: Option<(&[Demand], &[Rank])>,
    ) -> crate::Result<Self> {
        let (mut readies, mut puts, mut ends) = (Vec::new(), Vec::<TriggeredPut>::new(), Vec::new());
        // The neighbours that have a READY and an END already, by direction.
        let (mut ready, mut put) = (Vec::new(), Vec::new());
        let together = relays.is_none();
        let mut order: Vec<usize> = (0..channels.len()).collect();
        // The first channel is the one that both ends number first, regardless of the slots.
        order.sort_by_key(|at| if together { channels[*at].index } else { 0 });
        for at in order {
            let (channel, agreed, contact) = (&channels[at], &agreed[at], &theirs[at]);
            let edge = CpuChannel { handles, channel, contact, connections };
            if agreed.inn.is_some() && !(together && ready.contains(&channel.member)) {
                ready.push(channel.member);
                readies.push(edge.ready()?);
                ends.push(edge.end()?);
            }
            if let Some(known) = put.iter().position(|member| together && *member == channel.member) {
                if let Some(block) = edge.block(agreed)? {
                    puts[known].add(block);
                }
                continue;
            }
            let mut fed = Vec::new();
            if let Some((edges, _)) = relays {
                let feeding = channels.iter().zip(edges).filter(|(_, fed)| fed.feeds() && fed.relay == edges[at].relay);
                for (feeding, _) in feeding {
                    fed.push(connections.end(feeding)?);
                }
            }
            if let Some(first) = edge.put(channel, agreed, fed)? {
                put.push(channel.member);
                puts.push(first);
            }
        }
        let ranks = match relays {
            Some((_, ranks)) => ranks.into(),
            None => awaited(fabric.rank(), channels),
        };
        Ok(CpuEngine::new(fabric, readies, puts, ends, ranks))
    }
}

/// Returns the ranks whose end also ends a wait of `me`: all neighbours, but not the rank itself,
/// which is still present when all others have left.
pub(crate) fn awaited(me: Rank, channels: &[Channel]) -> Box<[Rank]> {
    let all = channels.iter().map(|channel| channel.rank);
    let others: Box<[Rank]> = all.clone().filter(|rank| *rank != me).collect();
    if others.is_empty() { all.collect() } else { others }
}

/// Puts `number` to each of the words.
async fn put_number(fabric: &Fabric, words: &[RemoteSpan<u64>], number: u64) -> rdma_fabric::Result<()> {
    for word in words {
        // The operation owns the number, so its completion need not be awaited.
        match fabric.try_post(Put { to: word, from: [number], notice: None }) {
            Ok(_) => {}
            Err(Refused::Full(_)) => drop(fabric.put(word, [number]).await?),
            Err(Refused::Failed(error, _)) => return Err(error),
        }
    }
    Ok(())
}

/// Checks whether all words have reached `number`.
pub(super) fn have_reached(fabric: &Fabric, words: &[LocalWord<u64>], number: u64) -> rdma_fabric::Result<Progress> {
    for word in words {
        if fabric.load(word)? < number {
            return Ok(Progress::Pending);
        }
    }
    Ok(Progress::Done)
}

impl Engine for CpuEngine {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        put_number(&self.fabric, &self.readies, iteration).await?;
        Ok(self.puts.arm(iteration).await?)
    }

    async fn issue(&mut self) -> Result<()> {
        Ok(self.puts.wait().await?)
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        self.issue().await?;
        Ok(Triggers::until_reached(&self.fabric, &self.ends, &self.ranks, iteration).await?)
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        let put = Triggers::of(&self.fabric).test([&mut self.puts]).await?;
        Ok(if put { have_reached(&self.fabric, &self.ends, iteration)? } else { Progress::Pending })
    }
}

/// Partitions of blocks, put in calls of this member, each once it is marked and its receiver is
/// ready.
///
/// An edge has one READY, and one END for each of its partitions; otherwise like [`CpuEngine`].
pub(crate) struct CpuPartitions {
    fabric: Fabric,
    /// The puts, in the order of the channels that send.
    outs: Vec<Mutex<TriggeredPuts>>,
    /// The words to which READYs are put: one for each incoming edge.
    readies: Vec<RemoteSpan<u64>>,
    /// The words that end an iteration: one for each partition that is received.
    ends: Vec<LocalWord<u64>>,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

impl CpuPartitions {
    /// Makes the engine of channels that are partitions: `partitions` of each edge, one after the
    /// other. `theirs` are the neighbours' contacts, by channel.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(crate) fn new(
        fabric: &Fabric,
        partitions: usize,
        channels: &[Channel],
        agreed: &[Agreed],
        connections: &Connections,
        theirs: &[CpuContact],
    ) -> crate::Result<Self> {
        let (mut outs, mut readies, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let handles = Handles::open(fabric);
        let ranks = awaited(fabric.rank(), channels);
        for (at, ((channel, agreed), contact)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let edge = CpuChannel { handles: &handles, channel, contact, connections };
            if agreed.inn.is_some() {
                ends.push(edge.end()?);
                if at % partitions == 0 {
                    readies.push(edge.ready()?);
                }
            }
            if let Some(put) = edge.put(&channels[at - at % partitions], agreed, Vec::new())? {
                outs.push(Mutex::new(TriggeredPuts::new(fabric, vec![put], &ranks)));
            }
        }
        Ok(CpuPartitions { fabric: fabric.clone(), outs, readies, ends, ranks })
    }

    /// Arms partition `at`: it leaves when its receiver is ready. Once per iteration.
    pub(crate) fn arm(&self, at: usize, iteration: u64) {
        self.outs[at].lock().unwrap_or_else(PoisonError::into_inner).leave(iteration);
    }

    fn outs(&mut self) -> impl Iterator<Item = &mut TriggeredPuts> {
        self.outs.iter_mut().map(|out| out.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For partitions that are all [armed](CpuPartitions::arm).
impl Engine for CpuPartitions {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        Ok(put_number(&self.fabric, &self.readies, iteration).await?)
    }

    async fn issue(&mut self) -> Result<()> {
        for out in self.outs() {
            out.wait().await?;
        }
        Ok(())
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        self.issue().await?;
        Ok(Triggers::until_reached(&self.fabric, &self.ends, &self.ranks, iteration).await?)
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        let fabric = self.fabric.clone();
        let put = Triggers::of(&fabric).test(self.outs()).await?;
        Ok(if put { have_reached(&self.fabric, &self.ends, iteration)? } else { Progress::Pending })
    }
}
