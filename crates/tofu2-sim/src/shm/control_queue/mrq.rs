//! A queue's message receive queue: a ring of 64-byte records with many producers, in any process, and one consumer.
//!
//! The protocol is that of [`crate::shm::notice_ring`]: a producer takes a position by compare-and-swap on the tail, which
//! names it, fills its record with plain stores and hands it over with the record's state word (lap, rank, stage); the claim
//! of a rank that has ended is skipped. What differs: the depth is the queue's, a record holds more, and a full ring is an
//! error of the queue, not something to wait for.

use super::claim::Word;
use crate::control_queue::status::Status;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use rdma_fabric::{
    Rank,
    control_queue::{MrqKind, MrqNotice, QueueId, Stadd},
};

/// Words of a record.
pub(super) const RECORD: usize = 8;

/// The words of a ring.
#[derive(Debug)]
pub(super) struct Ring<'a, W> {
    /// The next position, and who took the last: [`pack_tail`].
    pub(super) tail: &'a W,
    /// What a producer found at the head last.
    pub(super) seen: &'a W,
    /// Position of the oldest record; written by the owner.
    pub(super) head: &'a W,
    /// A power of two of them.
    pub(super) records: &'a [W],
    /// Who claimed a record, once somebody has claimed the next; one for each.
    pub(super) claims: &'a [W],
}

/// The ring's words contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// A record that a producer has claimed and must publish.
#[must_use]
#[derive(Debug)]
pub(super) struct Claim {
    position: u64,
    rank: u32,
}

const RANK_BITS: u32 = 25;
/// Stages of a record; 0 is never written.
const CLAIMED: u64 = 1;
const READY: u64 = 2;
const VOID: u64 = 3;

#[derive(Debug, PartialEq)]
enum Said {
    /// Nothing about this lap.
    Nothing,
    Now {
        rank: u32,
        stage: u64,
    },
    /// Said for a later one.
    Later,
}

impl<W: Word> Ring<'_, W> {
    #[inline]
    fn depth(&self) -> u64 {
        self.claims.len() as u64
    }

    /// Positions wrap here: they must fit into the tail, laps into 32 bits.
    #[inline]
    fn positions(&self) -> u64 {
        (self.depth() << 32).min(1 << (u64::BITS - RANK_BITS))
    }

    #[inline]
    fn distance(&self, later: u64, earlier: u64) -> u64 {
        later.wrapping_sub(earlier) & (self.positions() - 1)
    }

    #[inline]
    fn lap(&self, position: u64) -> u64 {
        position >> self.depth().trailing_zeros()
    }

    /// State or claim: lap (32 bits), rank (30 bits), stage (2 bits).
    #[inline]
    fn pack(&self, position: u64, rank: u32, stage: u64) -> u64 {
        self.lap(position) << 32 | u64::from(rank) << 2 | stage
    }

    #[inline]
    fn read(&self, word: u64, position: u64) -> Said {
        let (stage, laps) = (word & 3, self.positions() >> self.depth().trailing_zeros());
        match self.lap(position).wrapping_sub(word >> 32) & (laps - 1) {
            _ if stage == 0 => Said::Nothing,
            0 => Said::Now { rank: (word as u32) >> 2, stage },
            behind if behind < laps / 2 => Said::Nothing,
            _ => Said::Later,
        }
    }

    #[inline]
    fn record(&self, position: u64) -> &[W] {
        let at = (position & (self.depth() - 1)) as usize * RECORD;
        &self.records[at..at + RECORD]
    }

    #[inline]
    fn claim_word(&self, position: u64) -> &W {
        &self.claims[(position & (self.depth() - 1)) as usize]
    }

    /// Claim a record for `me`; `None` if the ring is full.
    #[inline]
    pub(super) fn claim(&self, me: Rank) -> Result<Option<Claim>, Damaged> {
        let rank = me.number();
        // Acquire: pairs with the release of the exchange below, which the next passes on to `consume`.
        let mut tail = self.tail.load(Acquire);
        loop {
            let (position, last) = (tail >> RANK_BITS, (tail as u32 & ((1 << RANK_BITS) - 1)).checked_sub(1));
            if position >= self.positions() {
                return Err(Damaged);
            }
            // Acquire: pairs with the release in `look_at_head`, which passes on that the record was read.
            if self.distance(position, self.seen.load(Acquire)) >= self.depth() && !self.look_at_head(position)? {
                return Ok(None);
            }
            if let Some(last) = last {
                self.keep_name(position.wrapping_sub(1) & (self.positions() - 1), last);
            }
            let next = (position + 1) & (self.positions() - 1);
            match self.tail.replace(tail, next << RANK_BITS | (u64::from(rank) + 1)) {
                Ok(()) => return Ok(Some(Claim { position, rank })),
                Err(now) => tail = now,
            }
        }
    }

    /// Whether there is room for `position`, by the head itself.
    #[cold]
    fn look_at_head(&self, position: u64) -> Result<bool, Damaged> {
        // Acquire: pairs with the release in `consume`, so that the record may be overwritten.
        let head = self.head.load(Acquire) & (self.positions() - 1);
        // Release: pairs with the acquire in `claim`.
        self.seen.store(head, Release);
        match self.distance(position, head) {
            ahead if ahead < self.depth() => Ok(true),
            ahead if ahead == self.depth() => Ok(false),
            // By now the tail may be a lap further on, but then so is the head.
            _ if self.tail.load(Acquire) >> RANK_BITS != position => Ok(true),
            _ => Err(Damaged),
        }
    }

    #[inline]
    fn keep_name(&self, position: u64, rank: u32) {
        let word = self.claim_word(position);
        let now = word.load(Relaxed);
        if self.read(now, position) == Said::Nothing {
            // Fails if somebody else was faster; the name is the same.
            let _ = word.replace(now, self.pack(position, rank, CLAIMED));
        }
    }

    /// Fill in and hand over a claimed record.
    #[inline]
    pub(super) fn publish(&self, claim: Claim, notice: &MrqNotice) {
        self.publish_words(claim, encode(notice));
    }

    /// The same for the notice of a command that went well.
    #[inline]
    pub(super) fn publish_good(&self, claim: Claim, kind: MrqKind, edata: u8, peer: QueueId, remote: Stadd) {
        self.publish_words(claim, [kind as u64 | u64::from(edata) << 8, peer.to_bits(), 0, 0, remote.to_bits(), 0, 0]);
    }

    #[inline]
    fn publish_words(&self, claim: Claim, words: [u64; RECORD - 1]) {
        self.record(claim.position)[1..].iter().zip(words).for_each(|(word, value)| word.store(value, Relaxed));
        self.hand_over(claim, READY);
    }

    /// Give a claimed record up.
    pub(super) fn withdraw(&self, claim: Claim) {
        self.hand_over(claim, VOID);
    }

    #[inline]
    fn hand_over(&self, Claim { position, rank }: Claim, stage: u64) {
        // Release: pairs with the acquire in `consume`; the command's bytes and the record come before.
        self.record(position)[0].store(self.pack(position, rank, stage), Release);
    }

    /// Whether [`Ring::consume`] would find nothing, unless a rank has ended.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        let head = self.head.load(Relaxed) & (self.positions() - 1);
        self.read(self.record(head)[0].load(Relaxed), head) == Said::Nothing
    }

    /// The oldest notice, if one is ready. One consumer at a time.
    #[inline]
    pub(super) fn consume(
        &self,
        anybody_ended: impl Fn() -> bool,
        has_ended: impl Fn(u32) -> bool,
    ) -> Result<Option<MrqNotice>, Damaged> {
        loop {
            let head = self.head.load(Relaxed) & (self.positions() - 1);
            let record = self.record(head);
            // Acquire: pairs with the release in `hand_over`.
            let notice = match self.read(record[0].load(Acquire), head) {
                Said::Now { stage: READY, .. } => {
                    Some(decode(core::array::from_fn(|word| record[word + 1].load(Relaxed))))
                }
                Said::Now { stage: VOID, .. } => None,
                Said::Nothing if !anybody_ended() => return Ok(None),
                Said::Nothing => match self.claimant(head)? {
                    Some(rank) if has_ended(rank) => {
                        // It may have gone on before it ended.
                        if self.read(record[0].load(Acquire), head) != Said::Nothing {
                            continue;
                        }
                        None
                    }
                    _ => return Ok(None),
                },
                _ => return Err(Damaged),
            };
            // Release: pairs with the acquire in `look_at_head`.
            self.head.store((head + 1) & (self.positions() - 1), Release);
            if let Some(notice) = notice {
                return notice.ok_or(Damaged).map(Some);
            }
        }
    }

    /// Who has claimed position `head`, if anybody has.
    #[cold]
    fn claimant(&self, head: u64) -> Result<Option<u32>, Damaged> {
        // Acquire: pairs with the release in `claim`.
        let tail = self.tail.load(Acquire);
        match self.distance(tail >> RANK_BITS, head) {
            0 => Ok(None),
            1 => Ok((tail as u32 & ((1 << RANK_BITS) - 1)).checked_sub(1)),
            ahead if ahead <= self.depth() => match self.read(self.claim_word(head).load(Relaxed), head) {
                Said::Now { rank, stage: CLAIMED } => Ok(Some(rank)),
                _ => Err(Damaged),
            },
            _ => Err(Damaged),
        }
    }
}

/// A record's words after its state: kind and edata, peer, value, own address, target's address, status. Of a failed command
/// the value's and the own address's words belong to the status.
#[inline]
fn encode(notice: &MrqNotice) -> [u64; RECORD - 1] {
    let status = Status::encode(notice.status);
    let (value, local) = match notice.status {
        Ok(()) => (notice.value, notice.local.to_bits()),
        Err(_) => (status.numbers, status.stadd),
    };
    let first = notice.kind as u64 | u64::from(notice.edata) << 8;
    [first, notice.peer.to_bits(), value, local, notice.remote.to_bits(), status.head, 0]
}

#[inline]
fn decode([first, peer, value, local, remote, head, zero]: [u64; RECORD - 1]) -> Option<MrqNotice> {
    use MrqKind::{LocalArmw, LocalGet, LocalPut, RemoteArmw, RemoteGet, RemotePut};
    let kinds = [LocalPut, RemotePut, LocalGet, RemoteGet, LocalArmw, RemoteArmw];
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
