//! A member's control block: one slot per round, written by that round's partners. Each word has a
//! single writer for the life of the group.

use super::Group;
use crate::{Fabric, LocalWord, Region, RemoteAddr, RemoteWord, Result};

/// Words of a slot, by their offsets in bytes. In round k the writer is the member 2^k before this
/// one (*before*) or the member 2^k after it (*behind*).
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// Before: the number of the barrier that the writer has reached.
    Barrier = 0,
    /// Before: key bits of the buffer that the writer offers.
    OfferKey = 8,
    /// Before: number of the collective to which its offer belongs; written after the key.
    Offer = 16,
    /// Behind: the number of the collective whose data the writer has delivered.
    Delivered = 24,
    /// The first of [`SETUP_IN_SLOT`] words that the group does not use: [`Group::setup_word`].
    Setup = 32,
    /// Before: the greatest number that the writer knows of, in agreements with odd numbers.
    GreatestOdd = 64,
    /// Before: number of that agreement; written after the greatest number.
    AgreedOdd = 72,
    /// [`Field::GreatestOdd`], in agreements with even numbers.
    GreatestEven = 80,
    /// [`Field::AgreedOdd`], in agreements with even numbers.
    AgreedEven = 88,
    /// Behind: key bits of the buffer that the writer offers. A broadcast's data travels in the
    /// opposite direction.
    ChildKey = 96,
    /// Behind: number of the collective to which its offer belongs; written after the key.
    Child = 104,
    /// Before: the number of the collective whose data the writer has delivered.
    Parent = 112,
}

/// The words by which data moves from one member to another.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// At the sender: the receiver's offer.
    pub(super) key: Field,
    pub(super) offer: Field,
    /// At the receiver: the number that confirms the arrival of the data.
    pub(super) delivered: Field,
}

impl Way {
    /// From the member 2^k after this one.
    pub(super) const BACK: Way = Way { key: Field::OfferKey, offer: Field::Offer, delivered: Field::Delivered };
    /// From the member 2^k before this one.
    pub(super) const FORTH: Way = Way { key: Field::ChildKey, offer: Field::Child, delivered: Field::Parent };
}

const SLOT: usize = 128;
/// The largest number of doubling steps: ranks are 32-bit numbers.
const SLOTS: usize = 32;
pub(super) const CONTROL_BYTES: usize = SLOT * SLOTS;
/// Words for set-up in each slot.
const SETUP_IN_SLOT: usize = 2;

fn offset(round: u32, field: Field) -> usize {
    round as usize * SLOT + field as usize
}

/// Resolves a word of the last slot, so that a provider whose cells have a different width fails
/// when the group is created and not later.
pub(super) fn check(fabric: &Fabric, control: &Region) -> Result<()> {
    control.word::<u64>(fabric, offset(SLOTS as u32 - 1, Field::Parent)).map(drop)
}

/// Returns the offset of a word for set-up.
fn setup_offset(index: usize) -> usize {
    assert!(index < Group::SETUP_WORDS, "no word {index} for set-up: there are {}", Group::SETUP_WORDS);
    offset((index / SETUP_IN_SLOT) as u32, Field::Setup) + index % SETUP_IN_SLOT * 8
}

impl Group {
    /// Words at each member that the group does not use.
    pub const SETUP_WORDS: usize = SETUP_IN_SLOT * SLOTS;

    /// Resolves word `index` of a member's words for set-up, of 64 bits each: for protocols that
    /// exchange a few values, such as names of queues or gates, between some members without a
    /// table of all. The group neither reads nor writes them.
    ///
    /// Protocols that use them one after the other agree on when: the usual form is that members put
    /// into each other's words, [flush](Fabric::flush_all), meet in a [`Group::barrier`], read their
    /// own words, and meet again before anything else is put. Initially 0, and after
    /// [`Group::memory_with_control`].
    ///
    /// # Errors
    /// As [`Group::rank`] and [`Fabric::remote_word`].
    ///
    /// # Panics
    /// If `index` is not below [`Group::SETUP_WORDS`].
    pub fn setup_word(&self, member: usize, index: usize) -> Result<RemoteWord<u64>> {
        self.at_member(member, setup_offset(index))
    }

    /// Resolves word `index` of this member's own words for set-up ([`Group::setup_word`]).
    ///
    /// # Errors
    /// As [`Fabric::local_word`].
    ///
    /// # Panics
    /// If `index` is not below [`Group::SETUP_WORDS`].
    pub fn own_setup_word(&self, index: usize) -> Result<LocalWord<u64>> {
        self.control.region().word(&self.fabric, setup_offset(index))
    }

    /// Resolves a word of this member's own control block.
    pub(super) fn own_word(&self, round: u32, field: Field) -> Result<LocalWord<u64>> {
        self.control.region().word(&self.fabric, offset(round, field))
    }

    /// Resolves a word of a member's control block.
    pub(super) fn word_of(&self, member: usize, round: u32, field: Field) -> Result<RemoteWord<u64>> {
        self.at_member(member, offset(round, field))
    }

    fn at_member(&self, member: usize, offset: usize) -> Result<RemoteWord<u64>> {
        let (rank, region) = (self.rank(member)?, self.key(member));
        self.fabric.remote_word(RemoteAddr { rank, region, offset: offset as u64 })
    }
}
