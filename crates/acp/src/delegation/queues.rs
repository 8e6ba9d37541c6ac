//! Requests through control queues: a rank's delegation helper receives at one, and its ordering
//! helper sends from another.
//!
//! The put of a request, with a notice, replaces flush and bit: once the server has taken the
//! notice, it sees the request. The server's queue holds as many notices as there are slots, so it
//! never overflows. A notice counts only if its poster still owns the slot, because the slot of a
//! dead rank may be taken over before its notice is taken.
//!
//! This requires queues that share their rank's address space because of steering tags: the memory
//! named in a request, and the memory that the request is sent from, were registered on a different
//! queue than the one that uses them.
//!
//! # Source
//! Section 4 of the paper, figure 8.

use super::{AREA_QUEUE, OUTGOING_BYTES, REPLIES, REQUEST, SLOT_BYTES, SLOTS_AT, Slots, request::WORDS, slot_at};
use crate::{AcpError, Result};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, MrqKind, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, Fabric, FabricError, Rank, Region, RemoteAddr};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// A control queue, and its address of the symmetric allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    queue: QueueId,
    memory: Stadd,
}

impl Name {
    /// Returns the name in one word, never 0.
    pub(super) fn to_bits(self) -> u64 {
        // Tags have 24 bits, ids of queues 40.
        u64::from(self.memory.tag()) << QueueId::BITS | self.queue.to_bits()
    }

    /// Restores a name; `None` if the bits do not encode one.
    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let queue = QueueId::from_bits(bits & ((1 << QueueId::BITS) - 1))?;
        let tag = (bits >> QueueId::BITS) as u32;
        (tag != 0).then_some(Name { queue, memory: Stadd::new(tag, 0) })
    }
}

fn open(fabric: &Fabric, depth: u64) -> Result<ControlQueue> {
    let depth = u32::try_from(depth).unwrap_or(u32::MAX >> 1).next_power_of_two();
    let spec = QueueSpec { mrq_depth: depth, ..QueueSpec::new(QueueMode::Normal).depth(2 * REPLIES as u32) };
    Ok(ControlQueue::open(fabric, spec)?)
}

/// The queue at which a server takes requests.
#[derive(Debug)]
pub(crate) struct Listening {
    queue: ControlQueue,
    memory: Stadd,
    /// This rank's area in `memory`.
    area: RemoteAddr,
    slots: Slots,
}

impl Listening {
    pub(super) fn open(fabric: &Fabric, world: &Region, area: RemoteAddr, slots: Slots) -> Result<Self> {
        let queue = open(fabric, slots.count())?;
        let memory = queue.register(world)?;
        Ok(Listening { queue, memory, area, slots })
    }

    pub(super) fn name(&self) -> Name {
        Name { queue: self.queue.id(), memory: self.memory }
    }

    /// Waits for a notice; returns the slot of the request, and the rank that sent it.
    pub(super) async fn next(&self) -> Result<(u64, Rank)> {
        loop {
            // The loss of a rank does not end this wait, because any rank may send the next
            // request.
            let notice = self.queue.next_notice(Deps::One(self.area.rank)).await?;
            let behind = slot_at(self.area, 0, 0).offset + 1;
            if let (MrqKind::RemotePut, Ok(())) = (notice.kind, notice.status)
                && let Some(offset) = notice.remote.offset().checked_sub(behind)
                && offset / SLOT_BYTES < self.slots.count()
            {
                return Ok((offset / SLOT_BYTES, notice.peer.rank()));
            }
        }
    }
}

/// The queue from which requests are sent.
#[derive(Debug)]
pub(crate) struct Sending {
    queue: ControlQueue,
    /// The symmetric allocation, which was registered on the rank's other queue.
    memory: Stadd,
    /// The queues of the ranks that have received requests before.
    servers: Mutex<HashMap<Rank, Name>>,
}

impl Sending {
    /// Opens the queue of a rank that listens under the name `own`.
    pub(super) fn open(fabric: &Fabric, own: Name) -> Result<Self> {
        Ok(Sending { queue: open(fabric, REPLIES)?, memory: own.memory, servers: Mutex::default() })
    }

    /// Sends the request of the task's `nth` reply place, from this rank's area at `own`, to a slot
    /// of the area at `to`.
    pub(super) async fn send(
        &self,
        fabric: &Fabric,
        (own, nth): (RemoteAddr, u8),
        (to, slots, slot): (RemoteAddr, Slots, u64),
        words: [u64; WORDS],
    ) -> Result<()> {
        let name = self.name_of(fabric, to).await?;
        let from = RemoteAddr { offset: slot_at(own, slots.count(), OUTGOING_BYTES * u64::from(nth)).offset, ..own };
        fabric.write(&fabric.local_span::<u64>(from, WORDS)?, &words)?;
        let there = name.memory + slot_at(to, slot, REQUEST).offset;
        let put = Command::put(name.queue, self.memory + from.offset, there, size_of_val(&words) as u32);
        Ok(self.queue.post(Posting::new(put).remote(0), Deps::One(to.rank)).await?)
    }

    async fn name_of(&self, fabric: &Fabric, server: RemoteAddr) -> Result<Name> {
        let known = || self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known().get(&server.rank) {
            return Ok(*name);
        }
        let word = fabric.remote_word::<u64>(RemoteAddr { offset: server.offset + AREA_QUEUE, ..server })?;
        let what = &"the name of a control queue";
        let name = Name::from_bits(fabric.get_word(&word).await?);
        let name = name.ok_or(AcpError::Fabric(FabricError::Corrupt { rank: server.rank, what }))?;
        known().insert(server.rank, name);
        Ok(name)
    }
}

/// Returns the size of the buffers, after the slots, from which a rank sends its requests.
pub(super) fn outgoing_bytes() -> u64 {
    OUTGOING_BYTES * REPLIES
}

const _: () = assert!(OUTGOING_BYTES >= 8 * WORDS as u64 && SLOTS_AT > AREA_QUEUE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        let queue = QueueId::new(Rank::new(0xff_ffff), 3, 11, 7);
        let name = Name { queue, memory: Stadd::new(0xff_fffe, 0) };
        assert_eq!(Name::from_bits(name.to_bits()), Some(name));
        assert_eq!(Name::from_bits(0), None);
    }
}
