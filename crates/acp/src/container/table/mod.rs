//! The hash table under sets, multisets, maps and multimaps.
//!
//! Its object is a directory: for each rank of the table, the address of that rank's slots. A slot
//! consists of four words: lock, and head, tail and count of a doubly linked list of elements in
//! the same rank's heap. A key's hash selects its slot, so an element never changes its slot.
//!
//! Every call locks the slots that it accesses, one at a time.

mod bulk;
mod by_key;
mod element;
mod elements;
mod locked;
mod scan;
mod short;
mod slot;

pub(crate) use by_key::Amount;
pub(crate) use element::{Element, Kind};
pub(crate) use scan::Scan;
pub use scan::{Entry, Position};

use super::crc::place_of;
use crate::{Acp, AcpError, GlobalAddress, Result};
use core::{
    fmt,
    ops::{Deref, Range},
};
use rdma_fabric::{Rank, RemoteSpan, provider::Boxed};
use std::sync::{Arc, OnceLock};

/// The location of a [`Set`](crate::Set), [`Multiset`](crate::Multiset), [`Map`](crate::Map) or
/// [`Multimap`](crate::Multimap): plain data, with which any rank opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableRef {
    /// The address of its directory.
    pub address: GlobalAddress,
    /// The number of ranks over which it is distributed.
    pub ranks: u64,
    /// The number of slots at each of them.
    pub slots: u64,
}

impl TableRef {
    /// Returns the three words, for copying and sending.
    pub const fn to_words(self) -> [u64; 3] {
        [self.address.to_bits(), self.ranks, self.slots]
    }

    /// Restores the result of [`TableRef::to_words`]; `None` for invalid words.
    pub const fn from_words([address, ranks, slots]: [u64; 3]) -> Option<Self> {
        match GlobalAddress::from_bits(address) {
            Some(address) if ranks > 0 && slots > 0 => Some(TableRef { address, ranks, slots }),
            _ => None,
        }
    }

    /// Returns the location of a key of these bytes: the number of its rank in the directory, and
    /// its slot there.
    ///
    /// # Panics
    /// If there are no ranks or no slots.
    pub fn place_of(self, key: &[u8]) -> (usize, u64) {
        place_of(key, self.ranks, self.slots)
    }
}

/// Bytes of a slot.
const SLOT_BYTES: u64 = 32;

/// A selection of the parts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The part at the calling rank.
    Local,
}

/// A table that this rank has opened. Clones refer to the same table.
#[derive(Clone)]
pub(crate) struct Table(Arc<Opened>);

pub(crate) struct Opened {
    acp: Acp,
    kind: Kind,
    at: TableRef,
    /// The address of each rank's slots.
    directory: Box<[GlobalAddress]>,
    /// The heap of each part, once a call has found it mapped: a slot can be prefetched before the state is entered.
    heaps: Box<[OnceLock<RemoteSpan<u8>>]>,
}

impl Deref for Table {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.kind, self.at)
    }
}

#[deny(clippy::arithmetic_side_effects)]
impl Table {
    fn new(acp: &Acp, kind: Kind, at: TableRef, directory: Box<[GlobalAddress]>) -> Self {
        let heaps = directory.iter().map(|_| OnceLock::new()).collect();
        Table(Arc::new(Opened { acp: acp.clone(), kind, at, directory, heaps }))
    }

    pub(crate) fn create_boxed<'a>(
        acp: &'a Acp,
        kind: Kind,
        ranks: &'a [Rank],
        slots: usize,
        rank: Rank,
    ) -> Boxed<'a, Result<Self>> {
        Box::pin(Self::create(acp, kind, ranks, slots, rank))
    }

    pub(crate) fn open_boxed(acp: &Acp, kind: Kind, at: TableRef) -> Boxed<'_, Result<Self>> {
        Box::pin(Self::open(acp, kind, at))
    }

    async fn create(acp: &Acp, kind: Kind, ranks: &[Rank], slots: usize, rank: Rank) -> Result<Self> {
        let bytes = (slots as u64).checked_mul(SLOT_BYTES).filter(|bytes| *bytes <= isize::MAX as u64);
        let bytes = match bytes {
            None | Some(0) => return Err(AcpError::option("slots", "at least 1, and fit into memory", slots)),
            Some(_) if ranks.is_empty() => return Err(AcpError::option("ranks", "at least 1", 0)),
            Some(bytes) => bytes as usize,
        };
        let mut parts = Vec::with_capacity(ranks.len().saturating_add(1));
        let made = async |parts: &mut Vec<_>| {
            let mut zeros = Vec::new();
            for rank in ranks {
                let part = acp.malloc(bytes, *rank).await?;
                parts.push(part);
                // Only after the heap allocation has succeeded, because nothing else limits the
                // number of slots.
                zeros.resize(bytes, 0u8);
                acp.write(part, &zeros).await?;
            }
            let words: Vec<u64> = parts.iter().map(|part| part.to_bits()).collect();
            let address = acp.malloc(size_of_val(words.as_slice()), rank).await?;
            acp.write(address, &words).await?;
            Ok(TableRef { address, ranks: words.len() as u64, slots: slots as u64 })
        };
        match made(&mut parts).await {
            Ok(at) => Ok(Table::new(acp, kind, at, parts.into())),
            Err(error) => {
                for part in parts {
                    acp.free(part).await?;
                }
                Err(error)
            }
        }
    }

    async fn open(acp: &Acp, kind: Kind, at: TableRef) -> Result<Self> {
        let refused = AcpError::Damaged { address: at.address };
        let heap = acp.options().heap_bytes as u64;
        if at.ranks == 0 || at.slots == 0 || at.ranks > heap / 8 || at.slots > heap / SLOT_BYTES {
            return Err(refused);
        }
        let mut words = vec![0u64; at.ranks as usize];
        acp.read(at.address, &mut words).await?;
        let directory: Option<Box<[_]>> = words.into_iter().map(GlobalAddress::from_bits).collect();
        Ok(Table::new(acp, kind, at, directory.ok_or(refused)?))
    }

    /// Frees all memory of the table.
    pub(crate) async fn destroy(self) -> Result<()> {
        self.clear(Part::Whole).await?;
        for part in self.directory.iter() {
            self.acp.free(*part).await?;
        }
        self.acp.free(self.at.address).await
    }

    pub(crate) fn at(&self) -> TableRef {
        self.at
    }

    /// Returns the slot of a key.
    fn place(&self, key: &[u8]) -> Place {
        let (part, slot) = self.at.place_of(key);
        Place { part, slot }
    }

    /// Returns the rank whose memory holds a part.
    fn rank_of(&self, part: usize) -> Rank {
        self.directory[part].rank()
    }

    /// Returns whether a part is selected.
    fn is_in(&self, part: usize, asked: Part) -> bool {
        asked == Part::Whole || self.rank_of(part) == self.acp.rank()
    }

    /// Returns the numbers of the selected parts.
    fn parts(&self, asked: Part) -> impl Iterator<Item = usize> + '_ {
        let all: Range<usize> = 0..self.directory.len();
        all.filter(move |part| self.is_in(*part, asked))
    }

    /// Returns the selected slots, in order.
    fn places(&self, asked: Part) -> impl Iterator<Item = Place> + '_ {
        self.parts(asked).flat_map(|part| (0..self.at.slots).map(move |slot| Place { part, slot }))
    }

    /// Returns whether both are the same table.
    fn is(&self, other: &Table) -> bool {
        self.at.address == other.at.address
    }
}

/// A slot: the index of its part in the directory, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    part: usize,
    slot: u64,
}
