//! Memory as the explorer sees it: cells of 8 bytes, numbered in the order in which they are first
//! touched.
//!
//! A region exists from the start, zeroed; its contents remain visible after it has been dropped.
//! The explorer records the agents that touch each cell, and whether they write: a cell that only
//! its owner's CPU has ever touched is *private*, and accesses to it need not be ordered against
//! anything.

use crate::{dropped::Contested, mix::SmallMap};
use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr, Result, error::Mismatch};
use std::{collections::HashMap, ops::Range};

pub(crate) const CELL: usize = 8;
/// The first index of local regions; symmetric regions have lower indices.
const LOCAL: u32 = 1 << 16;
/// The index of the pseudo-region whose words are facts.
const FACTS: u32 = u32::MAX;

/// Some bytes of one cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct CellPart {
    pub(crate) cell: u32,
    /// The bits of the part; never empty.
    pub(crate) mask: u64,
}

impl CellPart {
    /// Returns the value of the word here, given the bits of its cell.
    pub(crate) fn get(self, bits: u64) -> u64 {
        (bits & self.mask) >> self.mask.trailing_zeros()
    }

    /// Returns a word's value shifted to its position in the cell.
    pub(crate) fn place(self, value: u64) -> u64 {
        (value << self.mask.trailing_zeros()) & self.mask
    }
}

/// An agent that touches cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agent {
    Cpu(Rank),
    /// A put or get of any rank.
    Network,
    /// An atomic of any rank.
    Atomic,
}

/// The location of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Home {
    Memory(RemoteAddr),
    Fact(u32),
}

#[derive(Debug)]
struct Cell {
    home: Home,
    cpu: Option<Rank>,
    shared: bool,
    /// Whether its owner's CPU ever writes it.
    stored: bool,
    /// Whether an atomic accesses it.
    atomic: bool,
    /// Whether anything but atomics accesses it.
    plain: bool,
}

/// The memory of all ranks of a job, and the agents that have touched it. It only grows.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    numbers: SmallMap<(u32, u32, u32), u32>,
    cells: Vec<Cell>,
    /// For each symmetric region, by ordinal: its bytes, and the terms of its access policy if it
    /// is protected, else zeros.
    symmetric: Vec<(usize, [u64; 3])>,
    /// For each local region: its owner, the owner's ordinal for it, and its bytes.
    local: Vec<(Rank, u32, usize)>,
    /// The names of words, by region and offset, and of [facts](Cells::name_of_fact).
    pub(crate) names: HashMap<(u32, u64), String>,
    pub(crate) contested: Contested,
    /// Whether atomics are written later to cells that are accessed in other ways, too.
    pub(crate) acknowledged: bool,
    /// Whether a cell has been wrongly treated as private, or as accessed by atomics only, since
    /// this flag was last cleared.
    pub(crate) grown: bool,
}

impl Cells {
    /// The generation of all regions: no index is ever reused.
    pub(crate) const GENERATION: u32 = 1;

    /// Returns the key of a fact's name in [`Cells::names`].
    pub(crate) fn name_of_fact(number: u32) -> (u32, u64) {
        (FACTS, number.into())
    }

    pub(crate) fn named(names: &HashMap<(u32, u64), String>) -> Self {
        Cells { names: names.clone(), ..Cells::default() }
    }

    /// Returns the key of the local region that `rank` allocates after `ordinal` others.
    pub(crate) fn alloc(&mut self, rank: Rank, ordinal: u32, bytes: usize) -> RegionKey {
        let wanted = (rank, ordinal, bytes);
        let place = self.local.iter().position(|local| *local == wanted).unwrap_or_else(|| {
            self.local.push(wanted);
            self.local.len() - 1
        });
        RegionKey { index: LOCAL + place as u32, generation: Cells::GENERATION }
    }

    pub(crate) fn alloc_symmetric(
        &mut self,
        rank: Rank,
        ordinal: u32,
        bytes: usize,
        terms: [u64; 3],
    ) -> Result<RegionKey> {
        match self.symmetric.get(ordinal as usize) {
            Some(region) if *region == (bytes, terms) => {}
            Some((len, _)) => {
                return Err(Mismatch {
                    collective: "alloc_symmetric",
                    rank,
                    argument: bytes as u64,
                    other: Rank::new(0),
                    other_argument: *len as u64,
                }
                .into());
            }
            None => self.symmetric.push((bytes, terms)),
        }
        Ok(RegionKey { index: ordinal, generation: Cells::GENERATION })
    }

    /// Returns whether a region is protected.
    pub(crate) fn is_locked(&self, region: RegionKey) -> bool {
        self.symmetric.get(region.index as usize).is_some_and(|(_, terms)| *terms != [0; 3])
    }

    /// Performs all checks of [`Provider::resolve`](rdma_fabric::provider::Provider::resolve).
    pub(crate) fn locate(&self, ranks: usize, addr: RemoteAddr, len: usize, align: usize) -> Result<()> {
        let RemoteAddr { rank, region, .. } = addr;
        if rank.index() >= ranks {
            return Err(FabricError::NoSuchRank { rank, ranks });
        }
        let found = if region.index >= LOCAL {
            let local = self.local.get((region.index - LOCAL) as usize);
            local.filter(|local| local.0 == rank).map(|local| local.2)
        } else {
            self.symmetric.get(region.index as usize).map(|(len, _)| *len)
        };
        let region_len = match found {
            Some(len) if region.generation == Cells::GENERATION => len as u64,
            _ => return Err(FabricError::NoSuchRegion { rank, region }),
        };
        addr.fits(len, align, region_len)
    }

    /// Returns bytes `at.start..at.end` of `addr`'s region as a part of a cell. They must be in one
    /// cell.
    pub(crate) fn part(&mut self, agent: Agent, addr: RemoteAddr, at: Range<u64>) -> CellPart {
        let cell = self.touch(agent, Home::Memory(RemoteAddr { offset: at.start / 8 * 8, ..addr }));
        let mut mask = [0u8; CELL];
        mask[(at.start % 8) as usize..][..(at.end - at.start) as usize].fill(0xff);
        CellPart { cell, mask: u64::from_ne_bytes(mask) }
    }

    pub(crate) fn fact(&mut self, rank: Rank, number: u32) -> CellPart {
        CellPart { cell: self.touch(Agent::Cpu(rank), Home::Fact(number)), mask: u64::MAX }
    }

    fn touch(&mut self, agent: Agent, home: Home) -> u32 {
        let cells = &mut self.cells;
        let number = *self.numbers.entry(key(home)).or_insert_with(|| {
            cells.push(Cell { home, cpu: None, shared: false, stored: false, atomic: false, plain: false });
            cells.len() as u32 - 1
        });
        let cell = &mut self.cells[number as usize];
        let before = cell.cpu;
        let shared = match agent {
            Agent::Cpu(rank) => *cell.cpu.get_or_insert(rank) != rank,
            Agent::Network | Agent::Atomic => true,
        };
        if agent == Agent::Atomic {
            cell.atomic = true;
        } else if !cell.plain {
            cell.plain = true;
            self.grown |= self.acknowledged && cell.atomic;
        }
        if shared && !cell.shared {
            cell.shared = true;
            self.grown |= before.is_some() && matches!(home, Home::Memory(_));
        }
        number
    }

    pub(crate) fn find(&self, home: Home) -> Option<u32> {
        self.numbers.get(&key(home)).copied()
    }

    pub(crate) fn home(&self, cell: u32) -> Home {
        self.cells[cell as usize].home
    }

    /// Returns the cells that are touched by a CPU and also by other agents or, where atomics are
    /// written later, by an atomic and in other ways.
    pub(crate) fn shared(&self) -> Vec<Home> {
        let written_later = |cell: &Cell| self.acknowledged && cell.atomic && cell.plain;
        let touched = self.cells.iter().filter(|cell| cell.shared && (cell.cpu.is_some() || written_later(cell)));
        touched.map(|cell| cell.home).filter(|home| matches!(home, Home::Memory(_))).collect()
    }

    /// Marks a cell as shared.
    pub(crate) fn share(&mut self, home: Home) {
        let cell = self.touch(Agent::Network, home);
        self.cells[cell as usize].shared = true;
    }

    /// Records that its owner's CPU writes a cell.
    pub(crate) fn store(&mut self, cell: u32) {
        self.cells[cell as usize].stored = true;
    }

    /// Returns whether its owner's CPU ever writes a cell.
    pub(crate) fn is_stored(&self, cell: u32) -> bool {
        self.cells[cell as usize].stored
    }

    /// Returns whether anything but atomics accesses a cell.
    pub(crate) fn is_accessed_plainly(&self, cell: u32) -> bool {
        self.cells[cell as usize].plain
    }

    /// Returns whether anything but its owner's CPU touches a cell.
    #[inline]
    pub(crate) fn is_shared(&self, cell: u32) -> bool {
        self.cells[cell as usize].shared
    }
}

fn key(home: Home) -> (u32, u32, u32) {
    match home {
        Home::Memory(RemoteAddr { rank, region, offset }) => (rank.number(), region.index, (offset / 8) as u32),
        Home::Fact(number) => (0, FACTS, number),
    }
}
