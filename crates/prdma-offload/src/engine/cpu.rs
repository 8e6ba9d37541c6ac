//! The engine without control queues: words are said, and puts wait for words, in calls of this member.
//!
//! An exchange is PRDMA as its paper has it:
//! ```text
//! receiver's start : R1  put k to the sender's word             READY(k)
//! sender           : S1  its word is k   S2  put the data   S3  put k to the receiver's word, after the data    END(k)
//! receiver's wait  : R2  its word is k
//! ```
//! S1 is looked at in whatever this member waits for next ([`rdma_fabric::triggered`]), so that one late neighbour keeps no other, and requests may be
//! waited for in any order. A boolean instead of k would let a sender that is slow to look take the READY of iteration k for that of k + 1.
//!
//! A collective has no R1: what its puts wait for are puts of others.
//!
//! # Source
//! Y. Ishikawa et al., Revisiting persistent communication in MPI (EuroMPI 2012); M. Hatanaka et al. (EuroMPI 2013).

use super::{Desk, Edges, Engine, Progress, desk::Ends};
use crate::{
    Result,
    init::{Agreed, Channel, Wires},
};
use rdma_fabric::{
    Deps, Fabric, LocalWord, Rank, Refused, RemoteSpan,
    op::Put,
    triggered::{TriggeredPut, TriggeredPuts},
};

/// Iterations run by calls of this member.
pub(crate) struct CpuEngine {
    fabric: Fabric,
    /// What start says: one word each.
    says: Vec<RemoteSpan<u64>>,
    puts: TriggeredPuts,
    /// What ends an iteration, when all is put.
    ends: Vec<LocalWord<u64>>,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

impl CpuEngine {
    /// Of words to say at start, of puts, and of the words that end an iteration; all get its number. Waits depend on `ranks`.
    pub(crate) fn new(
        fabric: &Fabric,
        says: Vec<RemoteSpan<u64>>,
        puts: Vec<TriggeredPut>,
        ends: Vec<LocalWord<u64>>,
        ranks: Box<[Rank]>,
    ) -> Self {
        CpuEngine { fabric: fabric.clone(), says, puts: TriggeredPuts::new(fabric, puts, &ranks), ends, ranks }
    }

    /// The engine of an exchange, once the neighbours' desks are known: `theirs` by channel. With `relays`, which say what each channel forwards and who
    /// can hold it up, data need the ends of what feeds their relay, too.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn exchange(
        fabric: &Fabric,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires,
        theirs: &[Desk],
        relays: Option<(&[Edges], &[Rank])>,
    ) -> Result<Self> {
        let (mut says, mut puts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ((channel, agreed), desk)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let edge = Ends { fabric, channel, desk, wires };
            if agreed.inn.is_some() {
                says.push(edge.ready()?);
                ends.push(edge.end()?);
            }
            let mut fed = Vec::new();
            if let Some((edges, _)) = relays {
                let feeding = channels.iter().zip(edges).filter(|(_, fed)| fed.feeds() && fed.relay == edges[at].relay);
                for (feeding, _) in feeding {
                    fed.push(wires.words.region().word(fabric, wires.end_word(feeding) as usize)?);
                }
            }
            puts.extend(edge.put(channel, agreed, fed)?);
        }
        let ranks = match relays {
            Some((_, ranks)) => ranks.into(),
            None => channels.iter().map(|channel| channel.rank).collect(),
        };
        Ok(CpuEngine::new(fabric, says, puts, ends, ranks))
    }
}

/// Put `number` to each of the words.
pub(super) async fn say(fabric: &Fabric, words: &[RemoteSpan<u64>], number: u64) -> Result<()> {
    for word in words {
        // The number is the operation's own: nobody needs to know when it has left.
        match fabric.try_post(Put { to: word, from: [number], notice: None }) {
            Ok(_) => {}
            Err(Refused::Full(_)) => drop(fabric.put(word, [number]).await?),
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Wait until all words have come to `number`, and carry out meanwhile what this member has armed.
pub(super) async fn all_heard(fabric: &Fabric, words: &[LocalWord<u64>], ranks: &[Rank], number: u64) -> Result<()> {
    for word in words {
        if fabric.load(word)? < number {
            let wait = fabric.wait_until(word, Deps::Ranks(ranks), |value| value >= number);
            fabric.triggers().beside(wait).await?;
        }
    }
    Ok(())
}

/// Whether all words have.
pub(super) fn have_come(fabric: &Fabric, words: &[LocalWord<u64>], number: u64) -> Result<Progress> {
    for word in words {
        if fabric.load(word)? < number {
            return Ok(Progress::Pending);
        }
    }
    Ok(Progress::Done)
}

impl Engine for CpuEngine {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        say(&self.fabric, &self.says, iteration).await?;
        Ok(self.puts.arm(iteration).await?)
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        self.puts.wait().await?;
        all_heard(&self.fabric, &self.ends, &self.ranks, iteration).await
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        let put = self.fabric.triggers().test([&mut self.puts]).await?;
        Ok(if put { have_come(&self.fabric, &self.ends, iteration)? } else { Progress::Pending })
    }
}
