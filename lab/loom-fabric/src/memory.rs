//! The region tables of all ranks, which record the owner of each cell.
//!
//! Loom does not track these tables. Cells exist from the start, so no access can precede their
//! creation.

use rdma_fabric::{
    FabricError, Rank, RegionKey, RemoteAddr, Result,
    error::{CellWidth, Mismatch, OutOfMemory},
};

/// The size of a cell in bytes, the only access width that this fabric offers.
pub(crate) const CELL: usize = 8;
/// The first index of local regions; symmetric regions have lower indices.
const LOCAL: u32 = 1 << 16;
const GENERATION: u32 = 1;

/// The use of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellUse {
    Word,
    /// A cell of a watched region.
    Data,
    /// A cell outside every region, or one that was never resolved.
    None,
}

/// Cells `start..start + cells` of one rank.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: usize,
    cells: usize,
}

/// The regions of all ranks. Symmetric regions grow from cell 0 upwards, local ones from the last
/// cell downwards.
#[derive(Debug)]
pub(crate) struct Regions {
    cells_per_rank: usize,
    symmetric: Vec<Extent>,
    /// The regions of each rank.
    own: Vec<Own>,
    /// Whether new regions hold data, so that loom reports races in them.
    watching: bool,
    /// Whether a cell has been resolved, by rank and cell.
    resolved: Vec<Vec<bool>>,
    /// Whether allocation is closed.
    closed: bool,
}

#[derive(Debug, Default)]
struct Own {
    /// Whether the rank still has its part of each symmetric region, by region.
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

    /// Closes allocation: no region can be created afterwards.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns the use of a rank's cell, given the current regions. Words that were never resolved
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

    /// Allocates the rank's next symmetric region. The first rank that calls this lays it out for
    /// all ranks.
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

    /// Performs all checks of [`Provider::resolve`](rdma_fabric::provider::Provider::resolve).
    pub(crate) fn locate(&mut self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<()> {
        let RemoteAddr { rank, region, offset } = addr;
        let extent = self.extent(rank, region)?;
        addr.fits(len, align, (extent.cells * CELL) as u64)?;
        // Accesses of width 1 are byte ranges, which may cover whole cells.
        let wanted = if width == 1 { len } else { width };
        whole(addr, wanted)?;
        let cell = extent.start + offset as usize / CELL;
        self.resolved[rank.index()][cell..cell + len / CELL].fill(true);
        Ok(())
    }

    /// Returns the first cell of `len` bytes that were located earlier, if the region still exists.
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
            // A peer that has not yet made its own allocation call can be accessed nevertheless.
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

/// Checks that the bytes are whole cells.
fn whole(addr: RemoteAddr, wanted: usize) -> Result<()> {
    let RemoteAddr { rank, region, offset } = addr;
    match wanted.is_multiple_of(CELL) && offset.is_multiple_of(CELL as u64) {
        true => Ok(()),
        false => Err(CellWidth { rank, region, wanted, cell: CELL }.into()),
    }
}
