//! A stencil with one-sided halo exchange, in the two forms of the lock paper's Figures 4 and 5.
//!
//! The grid is a torus of `across` × `down` tiles, one per rank. A step replaces each cell by the
//! mean of itself and its four neighbours. Every rank's window has space for the edges of four
//! sides; no rank has a table of the others.
//!
//! The second form differs from the printed one: a rank that is ahead writes its edges while a
//! slower neighbour still gets those of the previous step, since there is only one barrier in a
//! step. Therefore edges have two places, used alternately.

use super::RankFuture;
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{
    AccessLock, Window,
    locks::{OneLock, RpLock},
};
use std::{hash::Hasher, time::Duration};

/// The parameters of the stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stencil {
    /// Tiles in a row.
    pub across: u32,
    /// Tiles in a column.
    pub down: u32,
    /// Cells along each side of a tile.
    pub side: usize,
    /// Steps.
    pub steps: u32,
    /// The time to compute a step, in virtual time.
    pub compute: Duration,
}

/// The results of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Time of all steps, in picoseconds, without the lock.
    pub steps: u64,
    /// Time until all ranks have the lock, plus the time to release it, in picoseconds; 0 without a
    /// lock.
    pub lock: u64,
    /// Hash of the bits of all cells.
    pub hash: u64,
}

/// Left, right, up, down.
const SIDES: usize = 4;

impl Stencil {
    /// Returns a stencil for `ranks` ranks, with a torus as square as possible.
    pub fn of_ranks(ranks: u32, side: usize, steps: u32) -> Self {
        let down = (1..=ranks.isqrt()).rev().find(|down| ranks.is_multiple_of(*down)).unwrap_or(1);
        Stencil { across: ranks / down.max(1), down, side, steps, compute: Duration::ZERO }
    }

    /// Returns a rank's neighbours: left, right, up, down.
    fn neighbours(&self, rank: Rank) -> [Rank; SIDES] {
        let (x, y) = (rank.number() % self.across, rank.number() / self.across);
        let at = |x: u32, y: u32| Rank::new(y % self.down * self.across + x % self.across);
        [at(x + self.across - 1, y), at(x + 1, y), at(x, y + self.down - 1), at(x, y + 1)]
    }

    /// Returns the initial value of a cell of the whole grid.
    fn initial(x: usize, y: usize) -> f64 {
        ((x * 31 + y * 17) % 101) as f64
    }

    fn cells(&self, rank: Rank) -> Cells {
        let (x, y) = (rank.index() % self.across as usize, rank.index() / self.across as usize);
        let side = self.side;
        let all = (0..side * side).map(|i| Self::initial(x * side + i % side, y * side + i / side)).collect();
        Cells { side, now: all, halos: vec![0.0; SIDES * side] }
    }

    /// Returns the expected hash of every rank's tile, computed by one loop over the whole grid.
    pub fn reference(&self) -> Vec<u64> {
        let (width, height) = (self.across as usize * self.side, self.down as usize * self.side);
        let mut grid: Vec<_> = (0..width * height).map(|i| Self::initial(i % width, i / width)).collect();
        for _ in 0..self.steps {
            let at = |x: usize, y: usize| grid[y % height * width + x % width];
            let next = |i: usize| {
                let (x, y) = (i % width, i / width);
                mean(at(x, y), [at(x + width - 1, y), at(x + 1, y), at(x, y + height - 1), at(x, y + 1)])
            };
            grid = (0..width * height).map(next).collect();
        }
        let tile = |rank: usize| {
            let (x, y) = (rank % self.across as usize * self.side, rank / self.across as usize * self.side);
            hash((0..self.side * self.side).map(|i| grid[(y + i / self.side) * width + x + i % self.side]))
        };
        (0..(self.across * self.down) as usize).map(tile).collect()
    }
}

fn mean(cell: f64, around: [f64; SIDES]) -> f64 {
    (cell + around[0] + around[1] + around[2] + around[3]) / 5.0
}

fn hash(cells: impl Iterator<Item = f64>) -> u64 {
    // The standard library's hasher has fixed keys.
    let mut hasher = std::hash::DefaultHasher::new();
    cells.for_each(|cell| hasher.write_u64(cell.to_bits()));
    hasher.finish()
}

/// A rank's tile and its halo.
struct Cells {
    side: usize,
    now: Vec<f64>,
    /// The neighbours' cells next to this tile, by side.
    halos: Vec<f64>,
}

impl Cells {
    /// Returns the cells along a side.
    fn edge(&self, side: usize) -> impl Iterator<Item = f64> + '_ {
        let n = self.side;
        (0..n).map(move |i| {
            self.now[match side {
                0 => i * n,
                1 => i * n + n - 1,
                2 => i,
                _ => (n - 1) * n + i,
            }]
        })
    }

    fn step(&mut self) {
        let (n, now, halos) = (self.side, &self.now, &self.halos);
        let next = |i: usize| {
            let (x, y) = (i % n, i / n);
            let left = if x > 0 { now[i - 1] } else { halos[y] };
            let right = if x + 1 < n { now[i + 1] } else { halos[n + y] };
            let up = if y > 0 { now[i - n] } else { halos[2 * n + x] };
            let down = if y + 1 < n { now[i + n] } else { halos[3 * n + x] };
            mean(now[i], [left, right, up, down])
        };
        self.now = (0..n * n).map(next).collect();
    }

    fn hash(&self) -> u64 {
        hash(self.now.iter().copied())
    }
}

/// Returns the opposite side.
fn opposite(side: usize) -> usize {
    side ^ 1
}

/// Figure 4: fence, put to the neighbours, fence.
///
/// # Errors
/// As the window's.
pub async fn with_fences<L: AccessLock>(fabric: &Fabric, stencil: Stencil) -> ProgramResult<Tile> {
    let n = stencil.side;
    let window = Window::<f64, L>::allocate(fabric, SIDES * n).await?;
    let neighbours = stencil.neighbours(fabric.rank());
    let mut cells = stencil.cells(fabric.rank());
    window.barrier().await?;
    let begun = fabric.now();
    let mut epoch = window.fence().await?;
    for _ in 0..stencil.steps {
        for (side, neighbour) in neighbours.into_iter().enumerate() {
            let edge: Vec<_> = cells.edge(side).collect();
            epoch.at(neighbour)?.put(opposite(side) * n, edge).await?;
        }
        epoch.fence().await?;
        window.read(0, &mut cells.halos)?;
        cells.step();
        fabric.compute(stencil.compute).await;
        epoch.fence().await?;
    }
    epoch.end().await?;
    let steps = fabric.now().picos_since(begun);
    window.free().await?;
    Ok(Tile { steps, lock: 0, hash: cells.hash() })
}

/// Figure 5: within one epoch of all ranks: barrier, get from the neighbours, flush.
///
/// # Errors
/// As the window's.
pub async fn with_lock_all<L: AccessLock>(fabric: &Fabric, stencil: Stencil) -> ProgramResult<Tile> {
    let n = stencil.side;
    // Halos, and edges of even and of odd steps.
    let window = Window::<f64, L>::allocate(fabric, 3 * SIDES * n).await?;
    let neighbours = stencil.neighbours(fabric.rank());
    let mut cells = stencil.cells(fabric.rank());
    window.barrier().await?;
    let asked = fabric.now();
    let epoch = window.lock_all().await?;
    // Not in the figure. Without it, the first step would include the time until the last rank has
    // acquired the lock.
    window.barrier().await?;
    let begun = fabric.now();
    for step in 0..stencil.steps {
        let edges = (1 + step as usize % 2) * SIDES * n;
        for side in 0..SIDES {
            let edge: Vec<_> = cells.edge(side).collect();
            window.write(edges + side * n, &edge)?;
        }
        window.sync();
        window.barrier().await?;
        for (side, neighbour) in neighbours.into_iter().enumerate() {
            let halo = window.own(side * n..(side + 1) * n)?;
            epoch.at(neighbour)?.get_into(edges + opposite(side) * n, halo).await?;
        }
        epoch.flush_all().await?;
        window.read(0, &mut cells.halos)?;
        cells.step();
        fabric.compute(stencil.compute).await;
    }
    let ended = fabric.now();
    epoch.unlock().await?;
    let left = fabric.now();
    window.free().await?;
    let lock = begun.picos_since(asked) + left.picos_since(ended);
    Ok(Tile { steps: ended.picos_since(begun), lock, hash: cells.hash() })
}

/// Runs the stencil with fences and puts (Fig. 4).
pub fn stencil_fence(fabric: Fabric, stencil: Stencil) -> RankFuture<Tile> {
    Box::pin(async move { with_fences::<OneLock<RpLock>>(&fabric, stencil).await })
}

/// Runs the stencil with one epoch of all ranks, and gets (Fig. 5), under the paper's lock.
pub fn stencil_lock_all(fabric: Fabric, stencil: Stencil) -> RankFuture<Tile> {
    Box::pin(async move { with_lock_all::<OneLock<RpLock>>(&fabric, stencil).await })
}
