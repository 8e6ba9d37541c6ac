//! The barrier.

use super::{
    Arrival, Chosen, Part,
    edge::Way,
    fast_barrier::{Barrier, Progress},
};
use crate::{Algorithm, Collective, Communicator, Result, cost};
use core::future::Future;
use rdma_fabric::{fast_path::fast_path, join::join_all};

impl Communicator {
    /// Waits until all members have called this function (`fmpl_barrier`).
    ///
    /// The barrier unit or the network executes the barrier where the hardware supports it. If the
    /// network supports it only for parts of the members, flags go up a tree and multicasts down
    /// ([`Algorithm::Mixed`]). Where ranks outnumber CPUs, the last member to arrive at a counter releases the
    /// others ([`Algorithm::Central`]). Otherwise 8-byte flags are sent up the tree rooted at member 0 and back down: `len() - 1`
    /// flags and ⌊log2 p⌋ stages in each direction. Unless p is a power of two, that is one stage
    /// fewer than ⌈log2 p⌉: each member has a separate flag for every other member, so the flags of
    /// several children are not serialised, and the number of stages is the depth of the tree,
    /// which is the greatest number of bits set in a number below p (paper, section 6.2).
    ///
    /// # Errors
    /// [`CollectiveInUse`](crate::FmplError::CollectiveInUse) and
    /// [`NoHardware`](crate::FmplError::NoHardware), and nothing happens;
    /// [`MemberLeft`](crate::FmplError::MemberLeft);
    /// [`TooManyPeers`](crate::FmplError::TooManyPeers);
    /// [`Fabric`](crate::FmplError::Fabric), if a member was lost.
    pub fn barrier(&self) -> impl Future<Output = Result<()>> + Send {
        fast_path(Barrier::new(self), Barrier::slow)
    }

    /// Waits until all members have arrived at the counter of member 0.
    pub(crate) async fn meet_at_counter(&self, arrival: Arrival) -> Result<()> {
        let mut part = self.begin_by_hardware(0)?;
        let outcome = part.meet_centrally(arrival).await;
        part.end(outcome).await
    }

    /// Waits until all members have arrived, given the recorded progress.
    pub(crate) async fn meet_all(&self, progress: Progress) -> Result<()> {
        match self.algorithms.chosen(Collective::Barrier)? {
            Chosen::Always(Algorithm::Tree) | Chosen::ByLength => {
                let part = self.begin(0).await?;
                let outcome = Box::pin(part.rendezvous(progress)).await;
                part.end_in_tree(0, outcome).await
            }
            Chosen::Always(Algorithm::Mixed) => {
                let mut part = self.begin(0).await?;
                let outcome = Box::pin(part.meet_in_boxes()).await;
                part.end(outcome).await
            }
            Chosen::Always(_) => {
                let mut part = self.begin_by_hardware(0)?;
                let outcome = Box::pin(part.round()).await;
                part.end(outcome).await
            }
        }
    }
}

impl Part<'_> {
    /// Meets all members in a round of the barrier hardware.
    async fn round(&mut self) -> Result<()> {
        self.comm.fabric.charge(cost::INIT).await;
        let (rounds, comm) = self.rounds()?;
        rounds.enter(comm).await?;
        rounds.over(comm).await
    }

    async fn rendezvous(&self, progress: Progress) -> Result<()> {
        for child in self.children.iter().skip(progress.came) {
            child.signalled(Way::Up).await?;
        }
        if let Some(parent) = &self.parent {
            if !progress.told {
                parent.signal(Way::Up).await?;
            }
            if !progress.free {
                parent.signalled(Way::Down).await?;
            }
        }
        let waiting = self.children.iter().rev().skip(progress.let_go);
        join_all(waiting.map(|child| child.signal(Way::Down))).await.into_iter().collect()
    }
}
