//! Broadcast.

use super::{
    Part,
    edge::{Differ, Way},
};
use crate::{Communicator, Result, point::as_bytes};
use core::future::Future;
use rdma_fabric::{LocalSpan, Pod, provider::Boxed};

impl Communicator {
    /// Copies what member `root` has in `span` into the `span` of all members (`fmpl_bcast`). All
    /// name the same root and give as many bytes.
    ///
    /// A member passes the whole on to its children in the binomial tree, those with the most
    /// members below first: the last of p has it after ⌈log2 p⌉ sends (paper, section 5.2; its
    /// bandwidth is that of a link divided by that number, section 6.3). Each body is put straight
    /// from one member's span into the next one's.
    ///
    /// # Errors
    /// [`NoSuchMember`](crate::FmplError::NoSuchMember) and
    /// [`CollectiveInUse`](crate::FmplError::CollectiveInUse), and nothing is sent.
    /// [`CountMismatch`](crate::FmplError::CountMismatch) at two neighbours in the tree whose lengths
    /// differ, and at all members below them. [`BufferGone`](crate::FmplError::BufferGone) if the
    /// span's region was dropped meanwhile; [`MemberLeft`](crate::FmplError::MemberLeft);
    /// [`TooManyPeers`](crate::FmplError::TooManyPeers); [`Fabric`](crate::FmplError::Fabric), if a
    /// member was lost.
    pub fn broadcast<T: Pod>(&self, span: &LocalSpan<T>, root: usize) -> impl Future<Output = Result<()>> + Send {
        self.broadcast_bytes(as_bytes(span), root)
    }

    fn broadcast_bytes(&self, span: Result<LocalSpan<u8>>, root: usize) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let span = span?;
            let part = self.begin(root).await?;
            let outcome = part.broadcast(&span).await;
            part.end(outcome).await
        })
    }
}

impl Part<'_> {
    async fn broadcast(&self, span: &LocalSpan<u8>) -> Result<()> {
        self.expect_down(span).await?;
        self.down(span, None).await
    }

    /// Posts the receive for what comes down.
    pub(crate) async fn expect_down(&self, span: &LocalSpan<u8>) -> Result<()> {
        match &self.parent {
            Some(parent) => parent.post(Way::Down, span).await,
            None => Ok(()),
        }
    }

    /// Passes on what comes down. The root has it, unless members are known to differ.
    pub(crate) async fn down(&self, span: &LocalSpan<u8>, differ: Option<Differ>) -> Result<()> {
        let above = match &self.parent {
            Some(parent) => parent.arrival(Way::Down).await?,
            None => differ,
        };
        let mut first = above;
        for child in self.children.iter().rev() {
            let here = child.send(Way::Down, span, above).await?;
            first = first.or(here);
        }
        first.map_or(Ok(()), |differ| Err(differ.error()))
    }
}
