//! Locking and unlocking a slot.
//!
//! If the slot is mapped and free, a whole call is done [at once](Table::at_once). Otherwise, the
//! holder reads the elements in any number of steps: if its future is dropped, the slot is unlocked
//! unchanged. Making the changes and unlocking the slot is one piece of work run by [`finish`],
//! which cannot allocate or free, because that waits for other ranks.

use super::{
    Place, SLOT_BYTES, Table,
    elements::Elements,
    slot::{LIST, Slot, Unwritten},
};
use crate::{
    Acp, GlobalAddress, Result,
    container::{
        finish::finish_at,
        lock::{Held, lock},
        mapped::{MappedHeap, Memory, Missed},
    },
};
use core::{future::Future, pin::pin};

/// A slot that is unlocked in the background when it is dropped.
pub(super) struct Locked {
    pub(super) slot: Slot<Acp>,
    held: Held,
}

impl Table {
    /// Returns the address of a slot's lock.
    pub(super) fn slot_at(&self, place: Place) -> Result<GlobalAddress> {
        self.directory[place.part].offset_by(place.slot * SLOT_BYTES)
    }

    /// Locks a slot and reads its list.
    pub(super) async fn lock(&self, place: Place) -> Result<Locked> {
        let at = self.slot_at(place)?;
        let held = lock(&self.acp, at).await?;
        let elements = Elements { memory: self.acp.clone(), kind: self.kind };
        let read = elements.memory.words(at, LIST).await;
        match read.and_then(|words| Slot::of(elements, at, words)) {
            Ok(slot) => Ok(Locked { slot, held }),
            Err(error) => {
                held.unlock().await?;
                Err(error)
            }
        }
    }

    /// Runs `body` on a slot under its lock, if that is possible without waiting; `expected` is a
    /// word in the same heap that it may write. Returns `None` if it is not possible, or if `body`
    /// fails: then it must be done with the slot [locked](Table::lock).
    #[inline(always)]
    pub(super) fn at_once<Out>(
        &self,
        place: Place,
        expected: Option<GlobalAddress>,
        body: impl AsyncFnOnce(&mut Slot<MappedHeap<'_>>) -> Result<Out, Missed>,
    ) -> Option<Result<Out>> {
        let at = self.slot_at(place).ok()?;
        self.acp.mapped(at, |mapped| {
            let body = pin!(async {
                let words = mapped.words(at, LIST).await?;
                let mut slot = Slot::of(Elements { memory: mapped, kind: self.kind }, at, words)?;
                body(&mut slot).await
            });
            expected.inspect(|word| mapped.expect(*word));
            mapped.locked(at, body)
        })
    }

    /// Allocates an element for a part of the table.
    pub(super) async fn allocate(&self, part: usize, count: u64, key: &[u8], value: &[u8]) -> Result<Unwritten> {
        let address = self.acp.malloc(self.kind.element_bytes(key, value), self.rank_of(part)).await?;
        Ok(Unwritten::new(address, self.kind, count, key, value))
    }
}

impl Locked {
    /// Unlocks the slot, which has not changed; returns `found`, or the error of unlocking.
    pub(super) async fn unlock<Out>(self, found: Result<Out>) -> Result<Out> {
        let unlocked = self.held.unlock().await;
        found.and_then(|found| unlocked.map(|()| found))
    }

    /// Changes the slot, writes its list back and unlocks it. Once started, this runs to
    /// completion. If `change` fails, the list is written back in the state that `change` left.
    pub(super) async fn changed<Out, Change>(self, change: impl FnOnce(Slot<Acp>) -> Change) -> Result<Out>
    where
        Out: Send + 'static,
        Change: Future<Output = (Slot<Acp>, Result<Out>)> + Send + 'static,
    {
        let (acp, at, held) = (self.slot.elements.memory.clone(), self.slot.at, self.held);
        let change = change(self.slot);
        finish_at(&acp, at, |_| async move {
            let (slot, done) = change.await;
            let written = slot.write_back().await;
            let unlocked = held.unlock().await;
            done.and_then(|done| written.and(unlocked).map(|()| done))
        })
        .await
    }
}
