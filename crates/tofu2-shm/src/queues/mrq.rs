//! A queue's message receive queue: a [`ring`] in the queue's words, of 64-byte records.
//!
//! Its depth is the queue's MRQ depth, and a full ring is an error of the queue, not something to
//! wait for.

use crate::{memory::word::Word, notices::ring, queues::format::status::Status};
use core::sync::atomic::Ordering::Relaxed;
use rdma_fabric::control_queue::{MrqKind, MrqNotice, QueueId, Stadd};

pub(crate) use ring::{Claim, DamagedRing};

/// Words of a record.
pub(crate) const RECORD: usize = 8;

/// The words of a ring.
#[derive(Debug)]
pub(crate) struct Mrq<'a, W> {
    /// The next position, and the rank that took the last one.
    pub(crate) tail: &'a W,
    /// The head as a producer last read it.
    pub(crate) seen: &'a W,
    /// Position of the oldest record; written by the owner.
    pub(crate) head: &'a W,
    /// The records; their number is a power of two.
    pub(crate) records: &'a [[W; RECORD]],
    /// For each record, the rank that claimed it, once another rank has claimed the next.
    pub(crate) claims: &'a [W],
}

/// The ranks whose records are accepted: any, since the record itself identifies its peer.
const ANY: u64 = 1 << 30;

impl<W: Word> ring::Ring for Mrq<'_, W> {
    type Word = W;
    type Entry = [u64; RECORD - 1];

    #[inline(always)]
    fn depth(&self) -> u64 {
        self.claims.len() as u64
    }
    #[inline(always)]
    fn head(&self) -> &W {
        self.head
    }
    #[inline(always)]
    fn tail(&self) -> &W {
        self.tail
    }
    #[inline(always)]
    fn seen(&self) -> &W {
        self.seen
    }
    #[inline]
    fn name(&self, index: usize) -> &W {
        &self.claims[index]
    }
    #[inline(always)]
    fn state(&self, index: usize) -> &W {
        &self.records[index][0]
    }
    #[inline(always)]
    fn fill(&self, index: usize, entry: [u64; RECORD - 1]) {
        let [_, payload @ ..] = &self.records[index];
        for (word, value) in payload.iter().zip(entry) {
            word.store(value, Relaxed);
        }
    }
    #[inline(always)]
    fn copy(&self, index: usize) -> [u64; RECORD - 1] {
        let [_, payload @ ..] = &self.records[index];
        payload.each_ref().map(|word| word.load(Relaxed))
    }
    #[inline(always)]
    fn expect(&self, index: usize) {
        self.records[index][0].expect_store();
    }
}

impl<W: Word> Mrq<'_, W> {
    /// Fills in a claimed record and hands it over.
    #[inline]
    pub(crate) fn publish(&self, claim: Claim, notice: &MrqNotice) {
        ring::publish(self, claim, encode(notice));
    }

    /// Fills in a claimed record with the notice of a successful command, and hands it over.
    #[inline(always)]
    pub(crate) fn publish_good(&self, claim: Claim, kind: MrqKind, edata: u8, peer: QueueId, remote: Stadd) {
        let first = kind as u64 | u64::from(edata) << 8;
        ring::publish(self, claim, [first, peer.to_bits(), 0, 0, remote.to_bits(), 0, 0]);
    }

    /// Takes the oldest notice if it reports that a peer's put with `edata` succeeded. Returns whether
    /// it did.
    #[inline(always)]
    pub(crate) fn take_put(&self, edata: u8) -> bool {
        let wanted = MrqKind::RemotePut as u64 | u64::from(edata) << 8;
        ring::take_if(self, ANY, |[first, peer, _, _, _, head, zero]| {
            first == wanted && head | zero == 0 && QueueId::from_bits(peer).is_some()
        })
    }

    /// Returns the oldest notice, if one is ready.
    #[inline]
    pub(crate) fn consume(
        &self,
        anybody_ended: impl Fn() -> bool,
        has_ended: impl Fn(u32) -> bool,
    ) -> Result<Option<MrqNotice>, DamagedRing> {
        match ring::consume(self, ANY, anybody_ended, has_ended)? {
            Some((_, record)) => decode(record).ok_or(DamagedRing).map(Some),
            None => Ok(None),
        }
    }
}

// ----- records -----

/// Returns a record's words after its state: kind and edata, peer, value, local address, target's
/// address, status. If the command failed, the words of the value and the local address belong to
/// the status.
#[inline]
pub(crate) fn encode(notice: &MrqNotice) -> [u64; RECORD - 1] {
    let status = Status::encode(notice.status);
    let (value, local) = match notice.status {
        Ok(()) => (notice.value, notice.local.to_bits()),
        Err(_) => (status.numbers, status.stadd),
    };
    let first = notice.kind as u64 | u64::from(notice.edata) << 8;
    [first, notice.peer.to_bits(), value, local, notice.remote.to_bits(), status.head, 0]
}

#[inline]
pub(crate) fn decode([first, peer, value, local, remote, head, zero]: [u64; RECORD - 1]) -> Option<MrqNotice> {
    use MrqKind::{LocalAtomic, LocalGet, LocalPut, RemoteAtomic, RemoteGet, RemotePut};
    let kinds = [LocalPut, RemotePut, LocalGet, RemoteGet, LocalAtomic, RemoteAtomic];
    let kind = *kinds.get((first & 0xff) as usize)?;
    let (peer, edata) = (QueueId::from_bits(peer)?, (first >> 8) as u8);
    if first >> 16 != 0 || zero != 0 {
        return None;
    }
    let remote = Stadd::from_bits(remote);
    if head == 0 {
        return Some(MrqNotice { kind, peer, edata, value, local: Stadd::from_bits(local), remote, status: Ok(()) });
    }
    let status = Status { head, stadd: local, numbers: value }.decode()?;
    Some(MrqNotice { kind, peer, edata, value: 0, local: Stadd::from_bits(0), remote, status })
}

#[cfg(all(test, not(miri)))]
mod model;
#[cfg(test)]
mod tests;
