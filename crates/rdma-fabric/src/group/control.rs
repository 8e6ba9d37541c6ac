//! A member's control block: one slot per round, written by that round's partners. Each word has one writer for the group's life.

use crate::LocalWord;
use crate::Region;
use crate::{Fabric, Rank, RegionKey, RemoteAddr, RemoteWord, Result};

/// Words of a slot, in bytes from its start. In round k the member 2^k before writes them, or the one 2^k further on, as is said.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// Number of the barrier that the member before has reached.
    Barrier = 0,
    /// Key bits of the buffer that the member before offers.
    OfferKey = 8,
    /// Number of the collective the offer belongs to; written after the key.
    Offer = 16,
    /// Number of the collective whose data the member further on has delivered.
    Delivered = 24,
    /// Gate that signals the own gate of this slot's number; written by whose gate that is.
    GateSource = 32,
    /// Gate that the own gate of this slot's number signals.
    GateDestination = 40,
    /// Greatest number that the member before knows of, in agreements with odd numbers.
    GreatestOdd = 64,
    /// Number of that agreement; written after it.
    AgreedOdd = 72,
    /// The same for even numbers.
    GreatestEven = 80,
    /// The same for even numbers.
    AgreedEven = 88,
    /// As [`Field::OfferKey`], of the member further on: a broadcast's data goes the other way.
    ChildKey = 96,
    /// As [`Field::Offer`], of the member further on.
    Child = 104,
    /// As [`Field::Delivered`], by the member before.
    Parent = 112,
}

/// The words by which data comes from one member to another.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Where the receiver's offer is, at the sender.
    pub(super) key: Field,
    pub(super) offer: Field,
    /// Where it is told that the data is there, at the receiver.
    pub(super) delivered: Field,
}

impl Way {
    /// From the member 2^k further on.
    pub(super) const BACK: Way = Way { key: Field::OfferKey, offer: Field::Offer, delivered: Field::Delivered };
    /// From the member 2^k before.
    pub(super) const FORTH: Way = Way { key: Field::ChildKey, offer: Field::Child, delivered: Field::Parent };
}

const SLOT: usize = 128;
/// Groups double at most this often: ranks are 32-bit numbers.
const SLOTS: usize = 32;
pub(super) const CONTROL_BYTES: usize = SLOT * SLOTS;

pub(super) struct Control {
    region: Region,
}

fn offset(round: u32, field: Field) -> usize {
    round as usize * SLOT + field as usize
}

impl Control {
    pub(super) fn new(fabric: &Fabric, region: Region) -> Result<Self> {
        // Touch the last slot once, so that a provider with other cells fails here and not later.
        region.word::<u64>(fabric, offset(SLOTS as u32 - 1, Field::Parent))?;
        Ok(Control { region })
    }

    pub(super) fn own(&self, fabric: &Fabric, round: u32, field: Field) -> Result<LocalWord<u64>> {
        self.region.word(fabric, offset(round, field))
    }
}

/// The same field of another member's control block.
pub(super) fn theirs(
    fabric: &Fabric,
    rank: Rank,
    region: RegionKey,
    round: u32,
    field: Field,
) -> Result<RemoteWord<u64>> {
    fabric.remote_word(RemoteAddr { rank, region, offset: offset(round, field) as u64 })
}
