//! Broadcast.

use super::{
    Chosen, Outcome, Part,
    edge::{Differ, Way},
    fast_broadcast::{Broadcast, Passed},
    pieces::{Origin, Target},
};
use crate::{Algorithm, Collective, Communicator, FmplError, Result, cost};
use core::future::Future;
use rdma_fabric::{LocalSpan, Pod, fast_path::fast_path, provider::Boxed};

impl Communicator {
    /// Copies the contents of `span` at member `root` into the `span` of all members
    /// (`fmpl_bcast`). All members pass the same root and the same number of bytes.
    ///
    /// If the network can multicast to all members, the broadcast uses it, through buffers at
    /// the same address on all members. If the [table](crate::Table) selects multicast for some
    /// lengths and software for others, the root announces its choice to the other members.
    ///
    /// Where ranks outnumber CPUs, up to 192 bytes go from the root directly to a buffer of each member,
    /// and the root continues while up to 64 broadcasts are on their way ([`Algorithm::Central`]).
    ///
    /// In software, a member otherwise forwards the whole message to its children in the binomial tree, those
    /// with the largest subtrees first: the last of p members has it after ⌈log2 p⌉ sends (paper,
    /// section 5.2; its bandwidth is that of a link divided by that number, section 6.3). Each body
    /// is put directly from one member's span into the next one's.
    ///
    /// # Errors
    /// [`NoSuchMember`](crate::FmplError::NoSuchMember),
    /// [`CollectiveInUse`](crate::FmplError::CollectiveInUse) and
    /// [`NoHardware`](crate::FmplError::NoHardware), and nothing is sent.
    /// [`CountMismatch`](crate::FmplError::CountMismatch) at two neighbours in the tree whose
    /// lengths differ, and at all members below them; in hardware, at a member whose length differs
    /// from the root's. [`BufferGone`](crate::FmplError::BufferGone) if the span's region was
    /// dropped in the meantime; [`MemberLeft`](crate::FmplError::MemberLeft);
    /// [`TooManyPeers`](crate::FmplError::TooManyPeers); [`Fabric`](crate::FmplError::Fabric), if a
    /// member was lost.
    pub fn broadcast<T: Pod>(&self, span: &LocalSpan<T>, root: usize) -> impl Future<Output = Result<()>> + Send {
        fast_path(Broadcast::new(self, span, root), Broadcast::slow)
    }

    /// Continues a broadcast.
    pub(crate) fn broadcast_bytes(
        &self,
        span: Result<LocalSpan<u8>>,
        root: usize,
        passed: Passed,
    ) -> Boxed<'_, Result<()>> {
        if self.algorithms.some(Collective::Broadcast, Algorithm::Central) {
            // A future of its own, since moving the other one takes a noticeable time.
            return Box::pin(async move {
                let span = span?;
                let mut part = self.begin_by_hardware(root)?;
                let outcome = part.broadcast_centrally(&span, root).await;
                part.end(outcome).await
            });
        }
        Box::pin(async move {
            let span = span?;
            match self.algorithms.chosen(Collective::Broadcast)? {
                Chosen::Always(Algorithm::Tree) => {
                    let part = self.begin(root).await?;
                    let outcome = part.broadcast(&span, passed).await;
                    part.end_in_tree(root, outcome).await
                }
                _ => {
                    let mut part = self.begin_by_hardware(root)?;
                    let outcome = part.multicast(&span, root).await;
                    part.end(outcome).await
                }
            }
        })
    }
}

impl Part<'_> {
    pub(super) async fn broadcast(&self, span: &LocalSpan<u8>, passed: Passed) -> Result<()> {
        if !passed.posted {
            self.expect_down(span).await?;
        }
        self.down(span, None, passed).await
    }

    /// Uses the algorithm that the root's length selects: multicast or the tree.
    async fn multicast(&mut self, span: &LocalSpan<u8>, root: usize) -> Result<()> {
        let (comm, bytes) = (self.comm, span.len());
        comm.fabric.charge(cost::INIT).await;
        let told = match self.hardware.as_mut().map(|hardware| (&mut hardware.staging, &mut hardware.rounds)) {
            Some((Some(staging), Some(rounds))) => {
                let told = match comm.algorithms.at(Collective::Broadcast, bytes)? {
                    _ if comm.me() != root => staging.receive(comm, rounds, Target::Span(span), root).await,
                    Algorithm::Tree => staging.announce_tree(comm, rounds, bytes).await.map(|()| Outcome::ByTree),
                    _ => staging.send(comm, rounds, Origin::Span(span)).await.map(|()| Outcome::Complete(bytes)),
                };
                told.map_err(|error| staging.named(comm, error))?
            }
            _ => Outcome::ByTree,
        };
        match told {
            Outcome::ByTree => {
                self.meet(root).await?;
                self.broadcast(span, Passed::default()).await
            }
            Outcome::Complete(given) if given == bytes => Ok(()),
            Outcome::Complete(given) => {
                Err(FmplError::CountMismatch { member: root, bytes: given, other: comm.me(), other_bytes: bytes })
            }
        }
    }

    /// Posts the receive for the message from the parent.
    pub(crate) async fn expect_down(&self, span: &LocalSpan<u8>) -> Result<()> {
        match &self.parent {
            Some(parent) => parent.post(Way::Down, span).await,
            None => Ok(()),
        }
    }

    /// Passes the message from the parent on to the children. The root has the message already,
    /// unless the lengths of members are known to differ.
    pub(crate) async fn down(&self, span: &LocalSpan<u8>, differ: Option<Differ>, passed: Passed) -> Result<()> {
        let above = match &self.parent {
            Some(parent) if !passed.arrived => parent.arrival(Way::Down).await?,
            _ => differ,
        };
        let mut first = above;
        for child in self.children.iter().rev().skip(passed.sent) {
            let here = child.send(Way::Down, span, above).await?;
            first = first.or(here);
        }
        first.map_or(Ok(()), |differ| Err(differ.error()))
    }
}
