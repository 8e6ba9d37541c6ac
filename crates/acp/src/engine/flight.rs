//! What an operation that is not over at once still has to do.

use crate::Result;
use rdma_fabric::{Amo, AtomicWord, Fabric, RemoteSpan, RemoteWord, join::join, op, provider::Boxed};

/// Posts an operation when it is first polled, and ends when its effect is visible.
pub(crate) type Flight = Boxed<'static, Result<()>>;

/// Copies between two spans of one length.
pub(crate) fn copy(fabric: &Fabric, to: RemoteSpan<u8>, from: RemoteSpan<u8>) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        let posted = fabric.post(op::Copy { to: &to, from: &from }).await?;
        if to.rank() == fabric.rank() {
            return Ok(posted.await?);
        }
        // Begun together: whoever posts the copy flushes it, too, even if another task ends this.
        let (copied, visible) = join(posted, fabric.flush(to.rank())).await;
        Ok(copied.and(visible)?)
    })
}

/// Changes a word, and stores what it was before in own memory.
pub(crate) fn atomic<W: AtomicWord>(fabric: &Fabric, to: RemoteWord<W>, word: RemoteWord<W>, amo: Amo<W>) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move {
        let before = fabric.post(op::Atomic { word: &word, amo }).await?.await?;
        store(&fabric, &to, before)
    })
}

/// Stores what a word was before in own memory.
fn store<W: AtomicWord>(fabric: &Fabric, to: &RemoteWord<W>, before: W) -> Result<()> {
    Ok(fabric.store(&fabric.local_word(to.addr())?, before)?)
}

/// Changes a word of own memory by the CPU, and stores what it was before in own memory. Nothing of
/// this rank comes between the look and the change.
pub(crate) fn atomic_by_cpu<W: AtomicWord>(
    fabric: &Fabric,
    to: RemoteWord<W>,
    word: RemoteWord<W>,
    amo: Amo<W>,
) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move { store(&fabric, &to, change_by_cpu(&fabric, &word, amo)?) })
}

/// Changes a word of own memory by the CPU; returns what it was before.
pub(crate) fn change_by_cpu<W: AtomicWord>(fabric: &Fabric, word: &RemoteWord<W>, amo: Amo<W>) -> Result<W> {
    if let Some(before) = fabric.atomic_now(word, amo) {
        return Ok(before);
    }
    let own = fabric.local_word::<W>(word.addr())?;
    let before = fabric.load(&own)?;
    fabric.store(&own, amo.apply(before))?;
    Ok(before)
}

/// Ends when another rank has carried an operation out.
pub(crate) fn of_reply(asked: Boxed<'static, Result<u64>>) -> Flight {
    Box::pin(async move { asked.await.map(drop) })
}

/// Ends when another rank has carried an atomic out, and what it says the word was before is stored
/// in own memory.
pub(crate) fn storing_reply<W: AtomicWord>(
    fabric: &Fabric,
    to: RemoteWord<W>,
    asked: Boxed<'static, Result<u64>>,
) -> Flight {
    let fabric = fabric.clone();
    Box::pin(async move { store(&fabric, &to, W::from_bits(asked.await?)) })
}
