//! One volume: buckets, and a heap of cells for keys whose bucket is taken.
//!
//! # Words
//! The volume begins with a line whose first word counts the heap's used cells. The cells follow,
//! first those of the buckets and then those of the heap. A cell has four words: 1 if it is used;
//! key; value; number of the next cell with a key of the same bucket, or 0. (Cell 0 is a bucket, so
//! it is never a next cell.)

use super::{TableError, TableResult};
use rdma_fabric::{Fabric, Group, Rank, Region, RegionKey, RemoteAddr, RemoteSpan};

/// The length in bytes of the line with the first word.
const LINE: u64 = 64;
const CELL_WORDS: usize = 4;
const CELL_BYTES: u64 = 8 * CELL_WORDS as u64;
/// The number of words that a counting rank reads at a time.
const PIECE: u64 = 1024;

/// The capacity of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeSize {
    /// The number of cells over which keys are distributed; at least 1.
    pub buckets: u32,
    /// The number of cells for keys whose bucket is taken.
    pub heap: u32,
}

/// A volume without its lock, which the caller holds: exclusively to insert, shared to look up. The
/// puts of a holder must be flushed between two of its operations (releasing a lock does).
pub struct Cells {
    fabric: Fabric,
    home: Rank,
    key: RegionKey,
    /// Has more than 0 buckets.
    size: VolumeSize,
    /// All of the volume, resolved once: looking an address up takes longer than an access.
    whole: RemoteSpan<u64>,
    /// At the home: keeps the memory registered.
    _region: Option<Region>,
}

impl core::fmt::Debug for Cells {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Cells(home {}, {:?})", self.home, self.size)
    }
}

/// The words of a cell.
#[derive(Clone, Copy, Debug)]
struct Cell {
    number: u64,
    used: bool,
    key: u64,
    value: u64,
    next: u64,
}

/// Steele, Lea and Flood's SplitMix64: neighbouring keys go to different places.
pub(super) fn hash(key: u64) -> u64 {
    let z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Cells {
    /// Creates an empty volume in `home`'s memory. Collective over `world`, the group of all ranks.
    ///
    /// # Errors
    /// The errors of [`Fabric::alloc`] (at the home; the other ranks are notified of its loss) and
    /// [`Group::broadcast`].
    pub async fn collective(world: &mut Group, home: Rank, size: VolumeSize) -> TableResult<Self> {
        let size = VolumeSize { buckets: size.buckets.max(1), ..size };
        let fabric = world.fabric().clone();
        fabric.node(home)?;
        let bytes = LINE + CELL_BYTES * (u64::from(size.buckets) + u64::from(size.heap));
        let region = if fabric.rank() == home { Some(fabric.alloc(bytes as usize)?) } else { None };
        let key = region.as_ref().map_or(RegionKey::from_bits(0), |region| region.key());
        let key = world.broadcast(home.index(), key).await?;
        let whole = fabric.remote_span(RemoteAddr { rank: home, region: key, offset: 0 }, bytes as usize / 8)?;
        Ok(Cells { fabric, home, key, size, whole, _region: region })
    }

    /// Returns the address of a byte of the volume.
    pub fn address(&self, offset: u64) -> RemoteAddr {
        RemoteAddr { rank: self.home, region: self.key, offset }
    }

    /// Sets the value of `key` and returns the previous one.
    ///
    /// # Errors
    /// [`TableError::Full`], with no changes; [`TableError::Corrupt`]; [`TableError::Fabric`].
    pub async fn insert(&self, key: u64, value: u64) -> TableResult<Option<u64>> {
        let first = self.cell(self.bucket(key)).await?;
        if !first.used {
            self.put(first.number, 0, [1, key, value, 0]).await?;
            return Ok(None);
        }
        if let Some(same) = self.find(first, key).await? {
            self.put(same.number, 2, [value]).await?;
            return Ok(Some(same.value));
        }
        let [used] = self.fabric.get(&self.span(0, 1)?, [0u64]).await?;
        let heap = u64::from(self.size.heap);
        if used > heap {
            return Err(self.corrupt(0, "used heap", used));
        }
        if used == heap {
            return Err(TableError::Full { home: self.home, heap: self.size.heap });
        }
        let new = u64::from(self.size.buckets) + used;
        self.put(new, 0, [1, key, value, first.next]).await?;
        self.put(first.number, 3, [new]).await?;
        self.fabric.put(&self.span(0, 1)?, [used + 1]).await?;
        Ok(None)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// [`TableError::Corrupt`], [`TableError::Fabric`].
    pub async fn get(&self, key: u64) -> TableResult<Option<u64>> {
        let first = self.cell(self.bucket(key)).await?;
        if !first.used {
            return Ok(None);
        }
        Ok(self.find(first, key).await?.map(|cell| cell.value))
    }

    /// Returns the number of keys.
    ///
    /// # Errors
    /// [`TableError::Fabric`].
    pub async fn count(&self) -> TableResult<u64> {
        let cells = u64::from(self.size.buckets) + u64::from(self.size.heap);
        let mut keys = 0;
        let mut from = 0;
        while from < cells {
            let piece = (cells - from).min(PIECE);
            let words = piece as usize * CELL_WORDS;
            let words = self.fabric.get(&self.span(place(from, 0), words)?, vec![0u64; words]).await?;
            keys += words.chunks(CELL_WORDS).filter(|cell| cell[0] != 0).count() as u64;
            from += piece;
        }
        Ok(keys)
    }

    fn bucket(&self, key: u64) -> u64 {
        ((hash(key) >> 32) * u64::from(self.size.buckets)) >> 32
    }

    /// Returns the cell of `key`, searching from `cell`.
    async fn find(&self, mut cell: Cell, key: u64) -> TableResult<Option<Cell>> {
        // At most once for every cell of the heap.
        for _ in 0..=self.size.heap {
            if cell.key == key {
                return Ok(Some(cell));
            }
            if cell.next == 0 {
                return Ok(None);
            }
            let (buckets, heap) = (u64::from(self.size.buckets), u64::from(self.size.heap));
            if !(buckets..buckets + heap).contains(&cell.next) {
                return Err(self.corrupt(cell.number, "next", cell.next));
            }
            cell = self.cell(cell.next).await?;
            if !cell.used {
                return Err(self.corrupt(cell.number, "used", 0));
            }
        }
        Err(self.corrupt(cell.number, "next", cell.next))
    }

    async fn cell(&self, number: u64) -> TableResult<Cell> {
        let words = self.fabric.get(&self.span(place(number, 0), CELL_WORDS)?, [0u64; CELL_WORDS]).await?;
        let [used, key, value, next] = words;
        if used > 1 {
            return Err(self.corrupt(number, "used", used));
        }
        Ok(Cell { number, used: used == 1, key, value, next })
    }

    async fn put<const N: usize>(&self, number: u64, word: u64, words: [u64; N]) -> TableResult<()> {
        self.fabric.put(&self.span(place(number, word), N)?, words).await?;
        Ok(())
    }

    fn span(&self, offset: u64, words: usize) -> TableResult<RemoteSpan<u64>> {
        let first = offset as usize / 8;
        Ok(self.whole.slice(first..first + words)?)
    }

    #[cold]
    fn corrupt(&self, cell: u64, what: &'static str, value: u64) -> TableError {
        TableError::Corrupt { home: self.home, cell, what, value }
    }
}

/// Returns the offset of a word of a cell.
const fn place(number: u64, word: u64) -> u64 {
    LINE + number * CELL_BYTES + word * 8
}
