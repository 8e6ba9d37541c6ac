//! The remaining work of operations that do not complete immediately.

use crate::Result;
use rdma_fabric::{Amo, AtomicWord, Fabric, RemoteSpan, RemoteWord, join::join, op, provider::Boxed};

/// Posts an operation when first polled, and completes when its effect is visible.
pub(crate) type Flight = Boxed<'static, Result<()>>;

/// Copies between two spans of the same length.
pub(crate) fn copy(fabric: &Fabric, to: RemoteSpan<u8>, from: RemoteSpan<u8>) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        let posted = fabric.post(op::Copy { to: &to, from: &from }).await?;
        if to.rank() == fabric.rank() {
            posted.await?;
            fabric.direct().barrier();
            return Ok(());
        }
        // Started together, so the task that posts the copy also flushes it, even if another task
        // completes the operation.
        let (copied, visible) = join(posted, fabric.flush(to.rank())).await;
        Ok(copied.and(visible)?)
    })
}

/// Changes a word, and stores its previous value in local memory.
pub(crate) fn atomic<W: AtomicWord>(fabric: &Fabric, to: RemoteWord<W>, word: RemoteWord<W>, amo: Amo<W>) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        let before = fabric.post(op::Atomic { word: &word, amo }).await?.await?;
        store(&fabric, &to, before)
    })
}

/// Stores the previous value of a word in local memory, visible to all before any later access of this rank.
fn store<W: AtomicWord>(fabric: &Fabric, to: &RemoteWord<W>, before: W) -> Result<()> {
    fabric.store(&fabric.local_word(to.addr())?, before)?;
    fabric.direct().barrier();
    Ok(())
}

/// Changes a word of local memory by the CPU, and stores its previous value in local memory. No
/// other access of this rank takes effect between the read and the write.
pub(crate) fn atomic_by_cpu<W: AtomicWord>(
    fabric: &Fabric,
    to: RemoteWord<W>,
    word: RemoteWord<W>,
    amo: Amo<W>,
) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move { store(&fabric, &to, change_by_cpu(&fabric, &word, amo)?) })
}

/// Changes a word of local memory by the CPU; returns its previous value.
pub(crate) fn change_by_cpu<W: AtomicWord>(fabric: &Fabric, word: &RemoteWord<W>, amo: Amo<W>) -> Result<W> {
    if let Some(before) = fabric.direct().atomic(word, amo) {
        return Ok(before);
    }
    let own = fabric.local_word::<W>(word.addr())?;
    let before = fabric.load(&own)?;
    fabric.store(&own, amo.apply(before))?;
    fabric.direct().barrier();
    Ok(before)
}

/// Completes when another rank has executed an operation.
pub(crate) fn of_reply(asked: Boxed<'static, Result<u64>>) -> Flight {
    Box::pin(async move { asked.await.map(drop) })
}

/// Completes when another rank has executed an atomic, and the previous value in its reply has been
/// stored in local memory.
pub(crate) fn storing_reply<W: AtomicWord>(
    fabric: &Fabric,
    to: RemoteWord<W>,
    asked: Boxed<'static, Result<u64>>,
) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move { store(&fabric, &to, W::from_bits(asked.await?)) })
}
