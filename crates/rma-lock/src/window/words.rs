//! The words by which members of a window tell each other where they are. Each has one writer, who puts it, and its owner.

use super::error::{WindowError, WindowResult};
use rdma_fabric::{Fabric, GroupMemory, LocalWord, Rank, RemoteWord, Result};

/// Windows of more members have no words for post and start, which take two for each pair.
pub(super) const MOST_POSTING: usize = 1024;

const WORD: usize = 8;

/// What a word says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// How many fences the one 2^k members before has reached.
    Reached(u32),
    /// That this member exposes its memory to the owner.
    Posted(usize),
    /// That this member is done with the owner's memory.
    Completed(usize),
}

/// In [`Words::bytes`] at each member.
pub(super) struct Words {
    memory: GroupMemory,
}

/// Steps in which all of so many members reach each other by doubling.
pub(super) fn rounds(members: usize) -> u32 {
    members.next_power_of_two().trailing_zeros()
}

impl Words {
    pub(super) fn bytes(members: usize) -> usize {
        let pairs = if members <= MOST_POSTING { 2 * members } else { 0 };
        (rounds(members) as usize + pairs) * WORD
    }

    pub(super) fn new(memory: GroupMemory) -> Self {
        Words { memory }
    }

    pub(super) fn memory(&self) -> &GroupMemory {
        &self.memory
    }

    fn offset(&self, word: Word) -> u64 {
        let rounds = rounds(self.memory.members()) as usize;
        let place = match word {
            Word::Reached(round) => round as usize,
            Word::Posted(member) => rounds + 2 * member,
            Word::Completed(member) => rounds + 2 * member + 1,
        };
        (place * WORD) as u64
    }

    pub(super) fn own(&self, fabric: &Fabric, word: Word) -> Result<LocalWord<u64>> {
        fabric.local_word(self.memory.at(fabric.rank(), self.offset(word))?)
    }

    pub(super) fn theirs(&self, fabric: &Fabric, rank: Rank, word: Word) -> Result<RemoteWord<u64>> {
        fabric.remote_word(self.memory.at(rank, self.offset(word))?)
    }

    /// A member's number, for the words of post and start.
    pub(super) fn number(&self, rank: Rank) -> WindowResult<usize> {
        let members = self.memory.members();
        if members > MOST_POSTING {
            return Err(WindowError::TooManyMembers { members, limit: MOST_POSTING });
        }
        let outside = rdma_fabric::FabricError::NotInGroup { rank, members };
        self.memory.number(rank).ok_or_else(|| outside.into())
    }
}
