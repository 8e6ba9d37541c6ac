//! A member's control block: one slot per round, written by that round's partners. Each word has a
//! single writer for the life of the group.

use super::Group;
use crate::{Fabric, LocalWord, Region, RemoteAddr, RemoteWord, Result};

/// Words of a slot, by their offsets in bytes. In round k the writer is the member 2^k before this
/// one (*before*) or the member 2^k after it (*behind*).
#[derive(Clone, Copy)]
pub(crate) enum Field {
    /// Before: the number of the barrier that the writer has reached.
    Barrier = 0,
    /// Before: key bits of the buffer that the writer offers.
    OfferKey = 8,
    /// Before: number of the collective to which its offer belongs; written after the key.
    Offer = 16,
    /// Behind: the number of the collective whose data the writer has delivered.
    Delivered = 24,
    /// The gate that signals this member's gate of this slot's number; written by the owner of that
    /// gate.
    GateSource = 32,
    /// The gate that this member's gate of this slot's number signals; written by the owner of that
    /// gate.
    GateDestination = 40,
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

fn offset(round: u32, field: Field) -> usize {
    round as usize * SLOT + field as usize
}

/// Resolves a word of the last slot, so that a provider whose cells have a different width fails
/// when the group is created and not later.
pub(super) fn check(fabric: &Fabric, control: &Region) -> Result<()> {
    control.word::<u64>(fabric, offset(SLOTS as u32 - 1, Field::Parent)).map(drop)
}

impl Group {
    /// Resolves a word of this member's own control block.
    pub(crate) fn own_word(&self, round: u32, field: Field) -> Result<LocalWord<u64>> {
        self.control.region().word(&self.fabric, offset(round, field))
    }

    /// Resolves a word of a member's control block.
    pub(crate) fn word_of(&self, member: usize, round: u32, field: Field) -> Result<RemoteWord<u64>> {
        let (rank, region) = (self.rank(member)?, self.key(member));
        self.fabric.remote_word(RemoteAddr { rank, region, offset: offset(round, field) as u64 })
    }
}
