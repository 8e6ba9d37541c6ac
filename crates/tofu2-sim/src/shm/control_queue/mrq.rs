//! A queue's message receive queue: a ring of 64-byte records with many producers, in any process, and few consumers.
//!
//! The protocol is that of [`crate::shm::notice_ring`]: a producer takes a position by compare-and-swap on the tail, which
//! names it, fills its record with plain stores and hands it over with the record's state word (lap, rank, stage); a consumer
//! copies the record and takes it by compare-and-swap on the head; names are kept only where the next position is taken by
//! another rank, and in every 2²⁰-th lap; the claim of a rank that has ended is skipped. What differs: the depth is the
//! queue's, a record holds more, and a full ring is an error of the queue, not something to wait for.

mod record;

use super::claim::Word;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use rdma_fabric::{
    Rank,
    control_queue::{MrqKind, MrqNotice, QueueId, Stadd},
};

use record::{decode, encode};

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
/// Of so many laps, the last has all names. Laps wrap at 2²³ or later.
const NAMING: u64 = 1 << 20;
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
    #[inline(always)]
    fn depth(&self) -> u64 {
        self.claims.len() as u64
    }

    /// Positions wrap here: they must fit into the tail, laps into 32 bits.
    #[inline(always)]
    fn positions(&self) -> u64 {
        (self.depth() << 32).min(1 << (u64::BITS - RANK_BITS))
    }

    #[inline(always)]
    fn distance(&self, later: u64, earlier: u64) -> u64 {
        later.wrapping_sub(earlier) & (self.positions() - 1)
    }

    #[inline(always)]
    fn after(&self, position: u64) -> u64 {
        position.wrapping_add(1) & (self.positions() - 1)
    }

    #[inline(always)]
    fn before(&self, position: u64) -> u64 {
        position.wrapping_sub(1) & (self.positions() - 1)
    }

    #[inline(always)]
    fn lap(&self, position: u64) -> u64 {
        position >> self.depth().trailing_zeros()
    }

    /// State or claim: lap (32 bits), rank (30 bits), stage (2 bits).
    #[inline(always)]
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

    #[inline(always)]
    fn record(&self, position: u64) -> &[W] {
        let at = (position & (self.depth() - 1)) as usize * RECORD;
        &self.records[at..at + RECORD]
    }

    #[inline]
    fn claim_word(&self, position: u64) -> &W {
        &self.claims[(position & (self.depth() - 1)) as usize]
    }

    /// Claim a record for `me` if that takes no more than a look and a compare-and-swap: there is room, nobody came between, and
    /// `me` took the position before. Else [`Ring::claim`] tells more.
    #[inline(always)]
    pub(super) fn claim_next(&self, me: Rank) -> Option<Claim> {
        let rank = me.number();
        // Orderings as in `claim`.
        let tail = self.tail.load(Acquire);
        let (position, last) = unpack_tail(tail);
        self.record(position)[0].expect_store();
        if self.distance(position, self.seen.load(Acquire)) >= self.depth()
            || position >= self.positions()
            || self.needs_name(position, last, rank)
        {
            return None;
        }
        self.tail.replace(tail, pack_tail(self.after(position), rank)).is_ok().then_some(Claim { position, rank })
    }

    /// Claim a record for `me`; `None` if the ring is full.
    #[inline(never)]
    pub(super) fn claim(&self, me: Rank) -> Result<Option<Claim>, Damaged> {
        let rank = me.number();
        // Acquire: pairs with the release of the exchange below, which the next passes on to `consume`.
        let mut tail = self.tail.load(Acquire);
        loop {
            let (position, last) = unpack_tail(tail);
            if position >= self.positions() {
                return Err(Damaged);
            }
            // Acquire: pairs with the release in `look_at_head`, which passes on that the record was read.
            if self.distance(position, self.seen.load(Acquire)) >= self.depth() && !self.look_at_head(position)? {
                return Ok(None);
            }
            self.record(position)[0].expect_store();
            if let Some(last) = last
                && self.needs_name(position, Some(last), rank)
            {
                self.keep_name(self.before(position), last);
            }
            // Release: pairs with the acquire in `claimant`: the name of who took the position before is kept.
            match self.tail.replace(tail, pack_tail(self.after(position), rank)) {
                Ok(()) => return Ok(Some(Claim { position, rank })),
                Err(now) => tail = now,
            }
        }
    }

    /// Whether `last`, who took the position before `position`, is to be named there before `rank` takes `position`.
    #[inline(always)]
    fn needs_name(&self, position: u64, last: Option<u32>, rank: u32) -> bool {
        last != Some(rank) || self.lap(self.before(position)) % NAMING == NAMING - 1
    }

    /// Whether there is room for `position`, by the head itself.
    #[cold]
    fn look_at_head(&self, position: u64) -> Result<bool, Damaged> {
        // Acquire: pairs with the release in `move_on`, so that the record may be overwritten.
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

    /// Write down that `rank` took `position`.
    fn keep_name(&self, position: u64, rank: u32) {
        let word = self.claim_word(position);
        let mut now = word.load(Relaxed);
        while self.read(now, position) == Said::Nothing {
            // Fails if somebody else was faster: with the same name, or an old one, having slept since.
            match word.replace(now, self.pack(position, rank, CLAIMED)) {
                Ok(()) => break,
                Err(other) => now = other,
            }
        }
    }

    /// Fill in and hand over a claimed record.
    #[inline]
    pub(super) fn publish(&self, claim: Claim, notice: &MrqNotice) {
        self.publish_words(claim, encode(notice));
    }

    /// The same for the notice of a command that went well.
    #[inline(always)]
    pub(super) fn publish_good(&self, claim: Claim, kind: MrqKind, edata: u8, peer: QueueId, remote: Stadd) {
        self.publish_words(claim, [kind as u64 | u64::from(edata) << 8, peer.to_bits(), 0, 0, remote.to_bits(), 0, 0]);
    }

    #[inline(always)]
    fn publish_words(&self, claim: Claim, words: [u64; RECORD - 1]) {
        let record = self.record(claim.position);
        for (word, value) in words.into_iter().enumerate() {
            record[word + 1].store(value, Relaxed);
        }
        self.hand_over(claim, READY);
    }

    /// Give a claimed record up.
    pub(super) fn withdraw(&self, claim: Claim) {
        self.hand_over(claim, VOID);
    }

    #[inline(always)]
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

    /// The oldest notice, if one is ready.
    #[inline]
    pub(super) fn consume(
        &self,
        anybody_ended: impl Fn() -> bool,
        has_ended: impl Fn(u32) -> bool,
    ) -> Result<Option<MrqNotice>, Damaged> {
        loop {
            let now = self.head.load(Relaxed);
            let head = now & (self.positions() - 1);
            let record = self.record(head);
            // Acquire: pairs with the release in `hand_over`.
            let found = match self.read(record[0].load(Acquire), head) {
                Said::Now { stage: READY, .. } => {
                    let words = core::array::from_fn(|word| record[word + 1].load(Relaxed));
                    if self.move_on(now) {
                        return decode(words).ok_or(Damaged).map(Some);
                    }
                    continue;
                }
                Said::Now { stage: VOID, .. } => Ok(true),
                Said::Nothing if !anybody_ended() => return Ok(None),
                Said::Nothing => match self.claimant(head) {
                    Ok(Some(rank)) if has_ended(rank) => {
                        // It may have gone on before it ended.
                        if self.read(record[0].load(Acquire), head) != Said::Nothing {
                            continue;
                        }
                        Ok(true)
                    }
                    Ok(_) => Ok(false),
                    Err(damaged) => Err(damaged),
                },
                _ => Err(Damaged),
            };
            match found {
                Ok(true) => _ = self.move_on(now),
                // Somebody else has moved the head on, so that this is about another lap.
                _ if self.head.load(Relaxed) != now => {}
                Ok(false) => return Ok(None),
                Err(damaged) => return Err(damaged),
            }
        }
    }

    /// Move the head on from what it holds, unless somebody has: then what was read of the record may be of any lap.
    #[inline(always)]
    fn move_on(&self, now: u64) -> bool {
        // Release: pairs with the acquire in `look_at_head`.
        self.head.replace(now, self.after(now)).is_ok()
    }

    /// Who has claimed position `head`, if anybody has.
    #[cold]
    fn claimant(&self, head: u64) -> Result<Option<u32>, Damaged> {
        // Acquire: pairs with the release in `claim`.
        let (next, last) = unpack_tail(self.tail.load(Acquire));
        let ahead = self.distance(next, head);
        if ahead > self.depth() {
            return Err(Damaged);
        }
        // A position without a name was taken by who took the next; the last one's is in the tail.
        for behind in 0..ahead.saturating_sub(1) {
            let position = head.wrapping_add(behind) & (self.positions() - 1);
            match self.read(self.claim_word(position).load(Relaxed), position) {
                Said::Now { rank, stage: CLAIMED } => return Ok(Some(rank)),
                Said::Nothing => {}
                _ => return Err(Damaged),
            }
        }
        Ok(last.filter(|_| ahead > 0))
    }
}

#[inline(always)]
fn pack_tail(position: u64, rank: u32) -> u64 {
    position << RANK_BITS | (u64::from(rank) + 1)
}

/// The next position, and the rank that took the one before, if any was.
#[inline(always)]
fn unpack_tail(tail: u64) -> (u64, Option<u32>) {
    (tail >> RANK_BITS, (tail as u32 & ((1 << RANK_BITS) - 1)).checked_sub(1))
}

#[cfg(all(test, not(miri)))]
mod model;
#[cfg(test)]
mod tests;
