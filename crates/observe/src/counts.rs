//! Counters of one rank, and their sums.

use crate::event::EventKind;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::AddAssign};

/// Counts of atomics by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Atomics {
    /// Fetch-and-add.
    pub add: u64,
    /// Fetch-and-store.
    pub swap: u64,
    /// Compare-and-swap.
    pub compare_swap: u64,
    /// Or.
    pub or: u64,
    /// And.
    pub and: u64,
    /// Exclusive or.
    pub xor: u64,
}

impl Atomics {
    /// Returns the counter of operations of this kind; `None` if they are not atomics.
    fn of(&mut self, kind: EventKind) -> Option<&mut u64> {
        Some(match kind {
            EventKind::Add => &mut self.add,
            EventKind::Swap => &mut self.swap,
            EventKind::CompareSwap => &mut self.compare_swap,
            EventKind::Or => &mut self.or,
            EventKind::And => &mut self.and,
            EventKind::Xor => &mut self.xor,
            _ => return None,
        })
    }

    /// Returns the names and counts of all kinds.
    pub fn by_kind(&self) -> [(&'static str, u64); 6] {
        let Atomics { add, swap, compare_swap, or, and, xor } = *self;
        [("add", add), ("swap", swap), ("cas", compare_swap), ("or", or), ("and", and), ("xor", xor)]
    }

    /// Returns the sum over all kinds.
    pub fn sum(&self) -> u64 {
        self.by_kind().iter().map(|(_, count)| count).sum()
    }
}

impl AddAssign for Atomics {
    fn add_assign(&mut self, other: Self) {
        self.add += other.add;
        self.swap += other.swap;
        self.compare_swap += other.compare_swap;
        self.or += other.or;
        self.and += other.and;
        self.xor += other.xor;
    }
}

/// Futures of the fabric that were pending when first polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The number of waits.
    pub count: u64,
    /// The sum of all durations, in nanoseconds. Waits of joined futures overlap.
    pub total_ns: u64,
    /// The longest duration, in nanoseconds.
    pub longest_ns: u64,
}

impl Waits {
    pub(crate) fn note(&mut self, ns: u64) {
        *self += Waits { count: 1, total_ns: ns, longest_ns: ns };
    }
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A word of the rank's own memory.
    Word,
    /// A notice.
    Notice,
    /// Room in one of the rank's own queues or in a target's notice queue.
    Room,
    /// A flush.
    Flush,
    /// A posted operation.
    Operation,
    /// Symmetric allocation, or the end of operations inside a region.
    Registration,
    /// A barrier-gate operation.
    Gate,
}

impl WaitKind {
    /// Returns its human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Word => "word",
            WaitKind::Notice => "notice",
            WaitKind::Room => "room",
            WaitKind::Flush => "flush",
            WaitKind::Operation => "operation",
            WaitKind::Registration => "registration",
            WaitKind::Gate => "gate",
        }
    }
}

/// Counters of one rank's operations, to one peer or in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Puts posted.
    pub puts: u64,
    /// Bytes put.
    pub put_bytes: u64,
    /// Gets posted.
    pub gets: u64,
    /// Bytes got.
    pub get_bytes: u64,
    /// Third-party copies posted, to the peer. Copies from or into local memory are puts and gets.
    pub copies: u64,
    /// Bytes of third-party copies.
    pub copy_bytes: u64,
    /// Atomics posted.
    pub atomics: Atomics,
    /// Puts with a notice, also counted in `puts`, and other commands of control queues with one.
    pub notices_sent: u64,
    /// Notices from the peer that were taken.
    pub notices_taken: u64,
    /// Flushes of the peer.
    pub flushes: u64,
    /// Postings that were refused for lack of room.
    pub full: u64,
    /// Waits for the peer: those that depended on it alone, those that ended with a notice from it,
    /// and those for operations on it.
    pub waits: Waits,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.puts += other.puts;
        self.put_bytes += other.put_bytes;
        self.gets += other.gets;
        self.get_bytes += other.get_bytes;
        self.copies += other.copies;
        self.copy_bytes += other.copy_bytes;
        self.atomics += other.atomics;
        self.notices_sent += other.notices_sent;
        self.notices_taken += other.notices_taken;
        self.flushes += other.flushes;
        self.full += other.full;
        self.waits += other.waits;
    }
}

/// The [`Counts`] of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PeerCounts {
    /// The peer; it may be the rank itself.
    pub peer: u32,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counters of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankCounts {
    /// Counts by peer; peers without any communication are omitted.
    pub peers: BTreeMap<u32, Counts>,
    /// Counts that concern no single peer: flushes of all targets, waits for several peers.
    pub nobody: Counts,
    /// Operations that do nothing.
    pub nops: u64,
    /// Waits for words that began, whether or not they had to wait.
    pub word_waits: u64,
    /// All waits, by their kinds.
    pub waits: BTreeMap<WaitKind, Waits>,
    /// Notices sent to and taken from each peer by control queues, which traces do not number.
    #[serde(skip)]
    pub(crate) of_queues: BTreeMap<u32, [u64; 2]>,
}

impl RankCounts {
    /// Returns the counters for `peer`.
    pub(crate) fn with(&mut self, peer: Option<u32>) -> &mut Counts {
        match peer {
            Some(peer) => self.peers.entry(peer).or_default(),
            None => &mut self.nobody,
        }
    }

    /// Counts `notices` sent to `peer`. Returns the number of the first one among those that the fabric sent.
    pub(crate) fn sent(&mut self, peer: Option<u32>, notices: u64) -> u64 {
        let sent = &mut self.with(peer).notices_sent;
        let before = *sent;
        *sent += notices;
        before - peer.and_then(|peer| self.of_queues.get(&peer)).map_or(0, |[sent, _]| *sent)
    }

    /// Counts a notice taken from `peer`. Returns its number among those that the fabric delivered.
    pub(crate) fn taken(&mut self, peer: u32) -> u64 {
        let taken = &mut self.with(Some(peer)).notices_taken;
        let before = *taken;
        *taken += 1;
        before - self.of_queues.get(&peer).map_or(0, |[_, taken]| *taken)
    }

    /// Counts `notices` that a control queue sent to `peer`.
    pub(crate) fn sent_by_queue(&mut self, peer: u32, notices: u64) {
        self.sent(Some(peer), notices);
        self.of_queues.entry(peer).or_default()[0] += notices;
    }

    /// Counts a notice that a control queue received from `peer`.
    pub(crate) fn taken_by_queue(&mut self, peer: u32) {
        self.taken(peer);
        self.of_queues.entry(peer).or_default()[1] += 1;
    }

    /// Counts `operations` of one kind, which move `bytes` together.
    pub(crate) fn note(&mut self, kind: EventKind, peer: Option<u32>, operations: u64, bytes: u64) {
        if kind == EventKind::Nop {
            self.nops += operations;
            return;
        }
        let counts = self.with(peer);
        match kind {
            EventKind::Put | EventKind::PutNotify => {
                (counts.puts, counts.put_bytes) = (counts.puts + operations, counts.put_bytes + bytes);
            }
            EventKind::Get => (counts.gets, counts.get_bytes) = (counts.gets + operations, counts.get_bytes + bytes),
            EventKind::Copy => {
                (counts.copies, counts.copy_bytes) = (counts.copies + operations, counts.copy_bytes + bytes);
            }
            _ => counts.atomics.of(kind).into_iter().for_each(|count| *count += operations),
        }
    }

    /// Returns the sums over all peers.
    pub fn total(&self) -> Counts {
        let mut total = self.nobody;
        self.peers.values().for_each(|&counts| total += counts);
        total
    }

    /// Returns the counts of each peer, in rank order.
    pub fn by_peer(&self) -> impl Iterator<Item = PeerCounts> + Clone + '_ {
        self.peers.iter().map(|(&peer, &counts)| PeerCounts { peer, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::Amo;

    #[test]
    fn sums_add_and_keep_the_longest_wait() {
        let mut rank = RankCounts::default();
        rank.with(Some(3)).puts = 2;
        rank.with(Some(3)).waits.note(500);
        rank.with(Some(1)).puts = 5;
        rank.with(Some(1)).waits.note(900);
        rank.with(None).flushes = 1;
        rank.note(EventKind::Xor, Some(1), 4, 32);
        assert_eq!((rank.sent(Some(7), 1), rank.taken(7)), (0, 0));
        rank.sent_by_queue(7, 3);
        rank.taken_by_queue(7);
        assert_eq!((rank.sent(Some(7), 1), rank.taken(7)), (1, 1));
        let total = rank.total();
        assert_eq!((total.notices_sent, total.notices_taken), (5, 3));
        assert_eq!((total.puts, total.flushes, total.atomics.sum(), total.atomics.xor), (7, 1, 4, 4));
        assert_eq!(total.waits, Waits { count: 2, total_ns: 1400, longest_ns: 900 });
        assert_eq!(rank.by_peer().map(|line| line.peer).collect::<Vec<_>>(), [1, 3, 7]);
    }

    #[test]
    fn every_atomic_has_a_counter_of_its_own() {
        let mut atomics = Atomics::default();
        let all = [Amo::Add(1u64), Amo::Swap(1), Amo::CompareSwap { expected: 0, new: 1 }];
        for amo in all.iter().chain(&[Amo::Or(1), Amo::And(1), Amo::Xor(1)]) {
            *atomics.of(EventKind::of_atomic(amo)).unwrap() += 1;
        }
        assert!(atomics.by_kind().iter().all(|&(_, count)| count == 1), "{atomics:?}");
    }
}
