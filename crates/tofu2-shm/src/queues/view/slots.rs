//! The slots of a session queue: commands in the TOQ, with the phase of the one being executed, and
//! their outcomes in the TCQ.

use super::{STAGE, TCQ_TAIL, View};
use crate::queues::{
    claim,
    format::{
        descriptor::{self, SLOT},
        status::Status,
    },
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};

#[inline(always)]
fn fill([a, b, c, d]: &[AtomicU64; SLOT], [first, second, third, fourth]: [u64; SLOT]) {
    a.store(first, Relaxed);
    b.store(second, Relaxed);
    c.store(third, Relaxed);
    d.store(fourth, Relaxed);
}

impl<'a> View<'a> {
    /// Returns the slot at a position of the ring that starts at word `first`.
    #[inline(always)]
    fn slot(&self, first: usize, position: u64) -> &'a [AtomicU64; SLOT] {
        // The depth is a power of two.
        let at = first + (position & u64::from(self.geometry.depth - 1)) as usize * SLOT;
        self.words[at..].first_chunk().expect("the ring is inside")
    }

    /// Returns the slot of the TOQ at a position. Session queues only.
    #[inline(always)]
    fn toq(&self, position: u64) -> &'a [AtomicU64; SLOT] {
        self.slot(self.geometry.toq(), position)
    }

    /// Returns a copy of the slot of the TOQ at a position.
    #[inline]
    pub(crate) fn read_slot(&self, position: u64) -> [u64; SLOT] {
        self.toq(position).each_ref().map(|word| word.load(Relaxed))
    }

    /// Fills the slot of the TOQ at a position, which no other rank reads yet.
    #[inline]
    pub(crate) fn write_slot(&self, position: u64, words: [u64; SLOT]) {
        fill(self.toq(position), words);
    }

    #[inline(always)]
    fn tcq(&self, number: u64) -> &'a [AtomicU64; SLOT] {
        self.slot(self.geometry.tcq(), number)
    }

    /// Moves the command at `position` to `phase`. Only for the holder of the claim.
    #[inline]
    pub(crate) fn enter(&self, position: u64, phase: claim::Phase) {
        self.words[STAGE].store(claim::pack(position, phase), Release);
        // When a process is killed, its effects are a prefix of its program order; so only the
        // compiler must be kept from reordering.
        compiler_fence(SeqCst);
    }

    /// Returns the read pointer as visible to other ranks: past a command that has started, since
    /// its effects are visible before it completes.
    pub(crate) fn begun(&self) -> u64 {
        let mut now = self.words[STAGE].load(Acquire);
        loop {
            let (position, phase) = claim::unpack(now);
            if phase == claim::Phase::Idle {
                return position;
            }
            let slots = descriptor::slots(&self.read_slot(position)).unwrap_or(1);
            // Acquire: pairs with the release in `turn`. Once the command has completed, its slots
            // may hold another.
            fence(Acquire);
            let then = self.words[STAGE].load(Acquire);
            if claim::unpack(then).0 == position {
                return position.wrapping_add(slots);
            }
            now = then;
        }
    }

    /// Returns the number of entries ever added to the TCQ.
    #[inline]
    pub(crate) fn completed(&self) -> u64 {
        // Acquire: pairs with the release in `complete`.
        self.words[TCQ_TAIL].load(Acquire)
    }

    /// Adds an entry to the TCQ. Only for the holder of the claim; the poster has left room.
    #[inline(always)]
    pub(crate) fn complete(&self, entry: TcqEntry) {
        let number = self.words[TCQ_TAIL].load(Relaxed);
        let words =
            [entry.position << 1 | u64::from(entry.kept), entry.status.head, entry.status.stadd, entry.status.numbers];
        fill(self.tcq(number), words);
        // Release: pairs with the acquire in `completed`.
        self.words[TCQ_TAIL].store(number.wrapping_add(1), Release);
    }

    /// Adds an entry for a command that succeeded to the TCQ, as [`View::complete`].
    #[inline(always)]
    pub(crate) fn complete_well(&self, position: u64) {
        self.complete(TcqEntry { position, kept: false, status: Status::default() });
    }

    /// Returns whether entry `number` of the TCQ reports that the command at `position` succeeded.
    #[inline(always)]
    pub(crate) fn has_completed_well(&self, number: u64, position: u64) -> bool {
        let [first, head, stadd, numbers] = self.tcq(number).each_ref().map(|word| word.load(Relaxed));
        (first ^ position << 1) | head | stadd | numbers == 0
    }

    /// Returns entry `number` of the TCQ.
    pub(crate) fn completion(&self, number: u64) -> TcqEntry {
        let [first, head, stadd, numbers] = self.tcq(number).each_ref().map(|word| word.load(Relaxed));
        TcqEntry { position: first >> 1, kept: first & 1 != 0, status: Status { head, stadd, numbers } }
    }
}

/// An entry of a TCQ in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcqEntry {
    /// Position of the command.
    pub(crate) position: u64,
    /// The status is an error for which no report was requested; if a completion was requested, it
    /// reports success.
    pub(crate) kept: bool,
    pub(crate) status: Status,
}
