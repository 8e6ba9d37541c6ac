//! What an operation that is not over at once still has to do.

use crate::Result;
use rdma_fabric::{Amo, AtomicWord, Fabric, FabricError, RemoteSpan, RemoteWord, op, provider::Boxed};

/// Posts an operation when it is first polled, and ends when its effect is visible.
pub(crate) type Flight = Boxed<'static, Result<()>>;

/// Copies between two spans of one length.
pub(crate) fn copy(fabric: &Fabric, to: RemoteSpan<u8>, from: RemoteSpan<u8>, flush_first: bool) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        if flush_first {
            fabric.flush_all().await?;
        }
        transfer(&fabric, &to, &from).await?;
        if to.rank() != fabric.rank() {
            fabric.flush(to.rank()).await?;
        }
        Ok(())
    })
}

async fn transfer(fabric: &Fabric, to: &RemoteSpan<u8>, from: &RemoteSpan<u8>) -> Result<(), FabricError> {
    let me = fabric.rank();
    if to.rank() == me {
        let own = fabric.local_span::<u8>(to.addr(), to.len())?;
        fabric.get(from, own).await.map(drop)
    } else {
        let own = fabric.local_span::<u8>(from.addr(), from.len())?;
        fabric.put(to, own).await.map(drop)
    }
}

/// Changes a word, and stores what it was before in own memory.
pub(crate) fn atomic<W: AtomicWord>(
    fabric: &Fabric,
    to: RemoteWord<W>,
    word: RemoteWord<W>,
    amo: Amo<W>,
    flush_first: bool,
) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        if flush_first {
            fabric.flush_all().await?;
        }
        let before = fabric.post(op::Atomic { word: &word, amo }).await?.await?;
        let own = fabric.local_word::<W>(to.addr())?;
        Ok(fabric.store(&own, before)?)
    })
}
