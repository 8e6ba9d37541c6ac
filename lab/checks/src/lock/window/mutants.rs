//! Wrong steps of windows.

use WindowMutant::*;
use explore::mutant::Mutant;
use rdma_fabric::{Amo, Rank, RemoteAddr};

/// A mutated step of windows or of the program that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowMutant {
    /// The end of an epoch does not flush the epoch's operations.
    NotFlushed,
    /// A member signals the next one in a barrier without having flushed its signal of the
    /// preceding barrier.
    TellsUnflushed,
    /// A member does not wait for the last round of a fence.
    LeavesEarly,
    /// An origin starts without waiting until its target has posted.
    StartsUnposted,
    /// A target writes to its memory after it has posted.
    WritesAfterPost,
    /// A target does not wait until its last origin has completed.
    OneIsEnough,
    /// A target that has waited does not clear the words.
    NotCleared,
    /// An origin that has started does not clear the words.
    PostNotTaken,
    /// A compare-and-swap of an element is executed as a get and a put.
    TornComparison,
    /// The remaining work of a dropped epoch is not executed.
    Forgotten,
}

/// The offset of the words: elements take the first line, words the next.
const WORDS: u64 = 64;

/// A [`WindowMutant`] at one rank of a job of `ranks`.
#[derive(Debug)]
pub(super) struct MutatedWindow {
    pub(super) mutant: WindowMutant,
    pub(super) ranks: usize,
}

impl MutatedWindow {
    pub(super) fn rounds(&self) -> u64 {
        self.ranks.next_power_of_two().trailing_zeros().into()
    }

    /// Returns whether `addr` is the posted (`which` is 0) or completed (1) word of a member.
    pub(super) fn is_word(&self, addr: RemoteAddr, which: u64, member: u64) -> bool {
        addr.region.index == 0 && addr.offset == WORDS + 8 * (self.rounds() + 2 * member + which)
    }

    pub(super) fn is_any_word(&self, addr: RemoteAddr, which: u64) -> bool {
        (0..self.ranks as u64).any(|member| self.is_word(addr, which, member))
    }
}

impl Mutant for MutatedWindow {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.mutant {
            NotFlushed => target.is_some(),
            TellsUnflushed => target.is_none(),
            _ => true,
        }
    }

    fn waits(&self, addr: RemoteAddr) -> bool {
        match self.mutant {
            LeavesEarly => addr.offset != WORDS + 8 * (self.rounds() - 1),
            OneIsEnough => !self.is_word(addr, 1, self.ranks as u64 - 1),
            _ => true,
        }
    }

    /// Returns a value that ends such a wait.
    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        if self.mutant == LeavesEarly { u64::MAX } else { 1 }
    }

    /// Delays the store forever: programs with these mutants have no atomics, after which it
    /// would be executed.
    fn late(&self, addr: RemoteAddr, _: u64) -> bool {
        match self.mutant {
            NotCleared => self.is_any_word(addr, 1),
            PostNotTaken => self.is_any_word(addr, 0),
            _ => false,
        }
    }

    fn tears(&self, addr: RemoteAddr, _: Amo<u64>) -> bool {
        self.mutant == TornComparison && addr.region.index == 0 && addr.offset < WORDS
    }

    fn detaches(&self) -> bool {
        self.mutant != Forgotten
    }
}
