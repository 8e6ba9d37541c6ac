//! The region tables of all ranks, which say who owns which cells.
//!
//! Loom sees nothing of this. Cells exist from the start, so that no access can come before their
//! creation.

use rdma_fabric::{
    FabricError, Rank, RegionKey, RemoteAddr, Result,
    error::{CellWidth, Mismatch, OutOfMemory},
};

/// The bytes of a cell, the only width that this fabric offers.
pub(crate) const CELL: usize = 8;
/// The first index of local regions; symmetric regions have lower indices.
const LOCAL: u32 = 1 << 16;
const GENERATION: u32 = 1;

/// What a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellUse {
    Word,
    /// A cell of a region that was watched.
    Data,
    /// A cell of no region, or one that was never resolved.
    None,
}

/// Cells `start..start + cells` of one rank.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: usize,
    cells: usize,
}

/// The regions of all ranks. Symmetric ones grow from cell 0 up, local ones from the last cell
/// down.
#[derive(Debug)]
pub(crate) struct Regions {
    cells_per_rank: usize,
    symmetric: Vec<Extent>,
    /// The regions of each rank.
    own: Vec<Own>,
    /// Whether regions made now hold data.
    watching: bool,
    /// Whether anybody has resolved a cell, by rank and cell.
    resolved: Vec<Vec<bool>>,
    /// Whether no more regions can be made.
    closed: bool,
}

#[derive(Debug, Default)]
struct Own {
    /// Whether the rank still has its part of each symmetric region.
    symmetric_live: Vec<bool>,
    local: Vec<Local>,
    local_cells: usize,
}

#[derive(Clone, Copy, Debug)]
struct Local {
    extent: Extent,
    live: bool,
    kind: CellUse,
}

impl Regions {
    pub(crate) fn new(ranks: usize, cells_per_rank: usize) -> Self {
        Regions {
            cells_per_rank,
            symmetric: Vec::new(),
            own: (0..ranks).map(|_| Own::default()).collect(),
            watching: false,
            resolved: vec![vec![false; cells_per_rank]; ranks],
            closed: false,
        }
    }

    pub(crate) fn watch(&mut self, watching: bool) {
        self.watching = watching;
    }

    /// Allows no more regions to be made.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns what a rank's cell is for, given the current regions; words that nobody has resolved
    /// count as unused.
    pub(crate) fn kind(&self, rank: usize, cell: usize) -> CellUse {
        let word = if self.resolved[rank][cell] { CellUse::Word } else { CellUse::None };
        let own = &self.own[rank];
        let inside = |extent: &Extent| (extent.start..extent.start + extent.cells).contains(&cell);
        if let Some(local) = own.local.iter().find(|local| local.live && inside(&local.extent)) {
            return if local.kind == CellUse::Data { CellUse::Data } else { word };
        }
        match self.symmetric.iter().zip(&own.symmetric_live).any(|(extent, live)| *live && inside(extent)) {
            true => word,
            false => CellUse::None,
        }
    }

    fn room(&self, rank: Rank, cells: usize) -> Result<usize> {
        let below = self.symmetric.last().map_or(0, |e| e.start + e.cells);
        let free = self.cells_per_rank - below - self.own.iter().map(|own| own.local_cells).max().unwrap_or(0);
        if cells <= free && !self.closed {
            Ok(below)
        } else {
            Err(OutOfMemory {
                rank,
                requested: cells * CELL,
                available: free * CELL,
                segment: self.cells_per_rank * CELL,
            }
            .into())
        }
    }

    pub(crate) fn alloc(&mut self, rank: Rank, bytes: usize) -> Result<RegionKey> {
        let cells = bytes.div_ceil(CELL);
        self.room(rank, cells)?;
        let kind = if self.watching { CellUse::Data } else { CellUse::Word };
        let own = &mut self.own[rank.index()];
        own.local_cells += cells;
        let extent = Extent { start: self.cells_per_rank - own.local_cells, cells };
        own.local.push(Local { extent, live: true, kind });
        Ok(RegionKey { index: LOCAL + own.local.len() as u32 - 1, generation: GENERATION })
    }

    /// Allocates the rank's next symmetric region. The first rank to ask lays it out for all.
    pub(crate) fn alloc_symmetric(&mut self, rank: Rank, bytes: usize) -> Result<RegionKey> {
        let cells = bytes.div_ceil(CELL);
        let ordinal = self.own[rank.index()].symmetric_live.len();
        match self.symmetric.get(ordinal) {
            Some(extent) if extent.cells == cells => {}
            Some(extent) => {
                return Err(Mismatch {
                    collective: "alloc_symmetric",
                    rank,
                    argument: bytes as u64,
                    other: Rank::new(0),
                    other_argument: (extent.cells * CELL) as u64,
                }
                .into());
            }
            None => {
                let start = self.room(rank, cells)?;
                self.symmetric.push(Extent { start, cells });
            }
        }
        self.own[rank.index()].symmetric_live.push(true);
        Ok(RegionKey { index: ordinal as u32, generation: GENERATION })
    }

    pub(crate) fn free(&mut self, rank: Rank, key: RegionKey) {
        let own = &mut self.own[rank.index()];
        if key.index >= LOCAL {
            own.local[(key.index - LOCAL) as usize].live = false;
        } else {
            own.symmetric_live[key.index as usize] = false;
        }
    }

    /// Carries out all checks of [`rdma_fabric::Fabric::locate`].
    pub(crate) fn locate(&mut self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<()> {
        let RemoteAddr { rank, region, offset } = addr;
        let extent = self.extent(rank, region)?;
        addr.fits(len, align, (extent.cells * CELL) as u64)?;
        // Bytes may be whole cells.
        let wanted = if width == 1 { len } else { width };
        whole(addr, wanted)?;
        let cell = extent.start + offset as usize / CELL;
        self.resolved[rank.index()][cell..cell + len / CELL].fill(true);
        Ok(())
    }

    /// Returns the first cell of `len` bytes that were located before, if the region still exists.
    pub(crate) fn cell(&self, addr: RemoteAddr, len: usize) -> Result<usize> {
        let extent = self.extent(addr.rank, addr.region)?;
        whole(addr, len)?;
        Ok(extent.start + addr.offset as usize / CELL)
    }

    fn extent(&self, rank: Rank, region: RegionKey) -> Result<Extent> {
        let Some(own) = self.own.get(rank.index()) else {
            return Err(FabricError::NoSuchRank { rank, ranks: self.own.len() });
        };
        let found = if region.index >= LOCAL {
            own.local.get((region.index - LOCAL) as usize).map(|local| (local.extent, local.live))
        } else {
            // A peer that has not yet made its own call can be accessed all the same.
            let live = own.symmetric_live.get(region.index as usize).copied().unwrap_or(true);
            self.symmetric.get(region.index as usize).map(|extent| (*extent, live))
        };
        match found {
            Some((extent, true)) if region.generation == GENERATION => Ok(extent),
            Some(_) => Err(FabricError::StaleRegion { rank, region }),
            None => Err(FabricError::NoSuchRegion { rank, region }),
        }
    }
}

/// Checks that bytes are whole cells.
fn whole(addr: RemoteAddr, wanted: usize) -> Result<()> {
    let RemoteAddr { rank, region, offset } = addr;
    match wanted.is_multiple_of(CELL) && offset.is_multiple_of(CELL as u64) {
        true => Ok(()),
        false => Err(CellWidth { rank, region, wanted, cell: CELL }.into()),
    }
}
