//! Broadcasts: the root puts the bytes and a flag into a slot of every other member, which copies them
//! out. The root waits for no member unless it is [`COUNT`] broadcasts ahead.
//!
//! # When a slot is free
//! All broadcasts of the communicator are numbered, whoever their root is, and broadcast n uses slot n
//! mod [`COUNT`]. After each [`REPORT`]-th one a member passes the mark of a tally, and the last one
//! to do so announces to every member that all have taken the broadcasts so far. A root sends n once all
//! have taken n − [`COUNT`].

use super::{Central, Ended, MOST, ROW, Tally, announce, body_after};
use crate::{
    Communicator, FmplError, Result,
    collective::{Part, fast_broadcast::Passed},
    cost,
};
use core::fmt;
use rdma_fabric::{Deps, LocalSpan, LocalWord, PutOrder, RemoteSpan, RemoteWord, provider::Boxed};

/// The number of slots of each member.
pub(super) const COUNT: usize = 64;
/// The number of broadcasts between two reports.
pub(super) const REPORT: u64 = COUNT as u64 / 2;

pub(super) struct Slots {
    pub(super) taken: Tally,
    pub(super) freed: LocalWord<u64>,
    /// At every member.
    pub(super) freeing: Box<[RemoteWord<u64>]>,
    pub(super) here: Box<[LocalSpan<u8>]>,
    /// The slots of every member.
    pub(super) there: Box<[RemoteSpan<u8>]>,
    pub(super) flags: Box<[LocalWord<u64>]>,
    /// The number of broadcasts.
    pub(super) number: u64,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broadcasts", self.number)
    }
}

/// The position of a broadcast's number in its flag, above the number of bytes, or [`BY_TREE`].
pub(super) const NUMBER: u32 = 16;
/// The bytes of a flag.
pub(super) const FLAG: usize = size_of::<u64>();
const BY_TREE: u64 = (1 << NUMBER) - 1;

/// Returns the slot of a broadcast.
#[inline]
pub(super) fn slot_of(number: u64) -> usize {
    (number % COUNT as u64) as usize
}

impl Central {
    /// Sends the next broadcast, or announces that it has too many bytes.
    async fn send(&mut self, comm: &Communicator, span: &LocalSpan<u8>) -> Result<Ended> {
        let (fabric, bytes) = (&comm.fabric, span.len());
        self.slots.number += 1;
        let Slots { number, taken, freed, there, .. } = &self.slots;
        let used = number.saturating_sub(COUNT as u64);
        self.reaches(comm, freed, used, (taken, used.div_ceil(REPORT))).await?;
        let (at, short) = (slot_of(self.slots.number) * ROW, bytes <= MOST);
        let body = at + body_after(FLAG, bytes);
        let others = || there.iter().enumerate().filter(|(member, _)| *member != comm.me()).map(|(_, slots)| slots);
        if short && bytes > 0 {
            for slots in others() {
                fabric.put(&slots.slice(body..body + bytes)?, span.clone()).await?;
            }
            if !fabric.caps().puts_in_order {
                fabric.flush_all().await?;
            }
        }
        let flag = number << NUMBER | if short { bytes as u64 } else { BY_TREE };
        for slots in others() {
            let word = slots.word_at::<u64>(at)?;
            fabric.put_word(&word, flag).await?;
        }
        self.taken(comm).await?;
        Ok(if short { Ended::Here } else { Ended::ByTree })
    }

    /// Receives the next broadcast, which `root` sends.
    async fn receive(&mut self, comm: &Communicator, span: &LocalSpan<u8>, root: usize) -> Result<Ended> {
        let fabric = &comm.fabric;
        self.slots.number += 1;
        let (number, slot) = (self.slots.number, slot_of(self.slots.number));
        let word = &self.slots.flags[slot];
        let has_come = |flag: u64| flag >> NUMBER == number;
        let mut flag = fabric.load(word)?;
        if !has_come(flag) && self.soon(comm, word, has_come).await {
            flag = fabric.load(word)?;
        }
        if !has_come(flag) {
            let deps = Deps::Step { writer: comm.rank(root)?, group: comm.listed.as_deref() };
            let left = self.unless_left(comm, deps, Box::pin(fabric.wait_until(word, deps, has_come))).await?;
            flag = fabric.load(word)?;
            if !has_come(flag) {
                return Err(FmplError::MemberLeft { member: left.unwrap_or(root) });
            }
        }
        let bytes = match flag & BY_TREE {
            BY_TREE => None,
            bytes => Some(bytes as usize),
        };
        if bytes == Some(span.len()) {
            let mut body = [0; MOST];
            let body = &mut body[..span.len()];
            let at = body_after(FLAG, body.len());
            fabric.read(&self.slots.here[slot].slice(at..at + body.len())?, body)?;
            fabric.write(span, body)?;
            fabric.charge_bytes(cost::COPY, body.len()).await;
        }
        self.taken(comm).await?;
        match bytes {
            None => Ok(Ended::ByTree),
            Some(bytes) if bytes == span.len() => Ok(Ended::Here),
            Some(bytes) => {
                Err(FmplError::CountMismatch { member: root, bytes, other: comm.me(), other_bytes: span.len() })
            }
        }
    }

    /// Reports the broadcasts taken, if that is due.
    async fn taken(&mut self, comm: &Communicator) -> Result<()> {
        let Slots { number, taken, freed, freeing, .. } = &mut self.slots;
        if number.is_multiple_of(REPORT) && taken.pass(&comm.fabric, *number / REPORT).await? {
            comm.fabric.store(freed, *number)?;
            announce(&comm.fabric, freeing, *number).await?;
            if comm.fabric.caps().put_order != PutOrder::AllTargets {
                // The next announcement, perhaps of another member, follows this member's next mark: this one must
                // not overtake it.
                comm.fabric.flush_all().await?;
            }
        }
        Ok(())
    }
}

impl Part<'_> {
    /// Copies the bytes of the root to all members: few through slots, more along the tree.
    pub(crate) async fn broadcast_centrally(&mut self, span: &LocalSpan<u8>, root: usize) -> Result<()> {
        self.comm.fabric.charge(cost::INIT).await;
        let (central, comm) = self.central()?;
        let ended = match comm.me() == root {
            true => central.send(comm, span).await,
            false => central.receive(comm, span, root).await,
        };
        let outcome = match ended {
            Ok(Ended::Here) => Ok(()),
            Ok(Ended::ByTree) => {
                let by_tree: Boxed<'_, Result<()>> = Box::pin(async {
                    self.meet(root).await?;
                    self.broadcast(span, Passed::default()).await
                });
                by_tree.await
            }
            Err(error) => Err(central.named(comm, error).await),
        };
        self.central()?.0.count(&outcome);
        outcome
    }
}
