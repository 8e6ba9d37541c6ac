//! Broadcasts from and into any memory, by the network's multicast.

use super::{
    Outcome, Part, Rounds, Staging,
    pieces::{Origin, Target},
};
use crate::{
    Algorithm, Collective, Communicator, FmplError, Result, cost,
    point::{Sink, Source},
};
use core::future::Future;
use rdma_fabric::{FabricError, provider::Boxed};

impl Communicator {
    /// Returns whether broadcasts of some lengths use the network's multicast, so that
    /// [`multicast_from`](Communicator::multicast_from) and
    /// [`multicast_into`](Communicator::multicast_into) are possible. All members get the same answer.
    pub fn multicasts(&self) -> bool {
        self.algorithms.some(Collective::Broadcast, Algorithm::Multicast)
    }

    /// Broadcasts a message from any memory to all other members, which call
    /// [`multicast_into`](Communicator::multicast_into) at the same point of their sequence of
    /// collectives. Completes when the message may be modified.
    ///
    /// A message that is not contiguous in fabric memory is packed piece by piece into two buffers of
    /// [`staging`](crate::Options::staging) bytes: while one is multicast, the next piece is packed
    /// (paper, section 5.3). Before its third piece, a root waits until all members have copied the
    /// first; this also applies to the pieces of consecutive broadcasts.
    ///
    /// # Errors
    /// [`NoHardware`](FmplError::NoHardware) without [multicasts](Communicator::multicasts) and
    /// [`CollectiveInUse`](FmplError::CollectiveInUse), and nothing is sent;
    /// [`MemberLeft`](FmplError::MemberLeft); [`Fabric`](FmplError::Fabric) if memory runs out or a
    /// member was lost.
    pub fn multicast_from<'a>(
        &'a self,
        source: &'a mut dyn Source,
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let sent: Boxed<'a, Result<()>> = Box::pin(async move {
            let mut part = self.begin_multicast(self.me())?;
            let outcome = part.send_all(Origin::Source(source)).await;
            part.end(outcome).await
        });
        sent
    }

    /// Receives, into any memory, the message that member `root` broadcasts by
    /// [`multicast_from`](Communicator::multicast_from).
    ///
    /// # Errors
    /// As [`multicast_from`](Communicator::multicast_from);
    /// [`NoSuchMember`](FmplError::NoSuchMember) and [`FromSelf`](FmplError::FromSelf), and nothing
    /// happens; [`CountMismatch`](FmplError::CountMismatch) if the message has another length, and
    /// nothing is written.
    pub fn multicast_into<'a>(
        &'a self,
        sink: &'a mut dyn Sink,
        root: usize,
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let received: Boxed<'a, Result<()>> = Box::pin(async move {
            if root == self.me() {
                return Err(FmplError::FromSelf { member: root });
            }
            let mut part = self.begin_multicast(root)?;
            let outcome = part.receive_all(Target::Sink(sink), root).await;
            part.end(outcome).await
        });
        received
    }

    fn begin_multicast(&self, root: usize) -> Result<Part<'_>> {
        if !self.multicasts() {
            return Err(FmplError::NoHardware { collective: Collective::Broadcast });
        }
        self.begin_by_hardware(root)
    }
}

impl Part<'_> {
    async fn send_all(&mut self, from: Origin<'_>) -> Result<()> {
        let (staging, rounds, comm) = self.staging()?;
        comm.fabric.charge(cost::INIT).await;
        let sent = staging.send(comm, rounds, from).await;
        sent.map_err(|error| staging.named(comm, error))
    }

    async fn receive_all(&mut self, to: Target<'_>, root: usize) -> Result<()> {
        let (staging, rounds, comm) = self.staging()?;
        comm.fabric.charge(cost::INIT).await;
        let bytes = to.bytes();
        let received = staging.receive(comm, rounds, to, root).await;
        let given = match received.map_err(|error| staging.named(comm, error))? {
            Outcome::Complete(given) if given == bytes => return Ok(()),
            Outcome::Complete(given) => given,
            Outcome::ByTree => {
                // The root has called `broadcast`, and its neighbours in the tree wait.
                self.meet(root).await?;
                return Err(FmplError::MemberLeft { member: self.comm.me() });
            }
        };
        Err(FmplError::CountMismatch { member: root, bytes: given, other: self.comm.me(), other_bytes: bytes })
    }

    fn staging(&mut self) -> Result<(&mut Staging, &mut Rounds, &Communicator)> {
        let hardware = self.hardware.as_mut();
        match hardware.map(|hardware| (hardware.staging.as_deref_mut(), hardware.rounds.as_mut())) {
            Some((Some(staging), Some(rounds))) => Ok((staging, rounds, self.comm)),
            _ => Err(FabricError::Unsupported { feature: &"multicast" }.into()),
        }
    }
}
