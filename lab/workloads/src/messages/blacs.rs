//! BLACS on FMPL: the crate `blacs`, on a grid of one row, with matrices of one column in
//! registered memory, which it does not pack.

use blacs::{Blacs, Grid, Matrix, MatrixMut, Options, Order, Scope, Topology};
use rdma_fabric::{Fabric, LocalSpan, ProgramResult, Region};
use std::time::Duration;

/// The time-out of sends, which the paper calls appropriate (section 5.3): the least that its
/// interface can set.
const TIME_OUT: Duration = Duration::from_millis(1);

/// One rank's BLACS.
pub(super) struct OnBlacs {
    blacs: Blacs,
    grid: Grid,
    memory: Region,
}

impl OnBlacs {
    /// Messages between two processes have 64 indices in turn, and flags two places for each: so
    /// many messages create all descriptors that later ones reuse.
    pub(super) const WARM_UP: u32 = 2 * 64;
    /// The same for messages of a scope, which have 8 indices.
    pub(super) const SCOPE_WARM_UP: usize = 2 * 8;

    pub(super) async fn new(fabric: &Fabric, longest: usize) -> ProgramResult<Self> {
        let mut blacs = Blacs::begin_with(fabric, Options::default().time_out(TIME_OUT)).await?;
        let processes = blacs.processes();
        let grid = blacs.grid(Order::RowMajor, 1, processes).await?;
        let memory = fabric.alloc_symmetric(longest.max(8)).await?;
        Ok(OnBlacs { grid: grid.expect("all processes are in the grid"), blacs, memory })
    }

    fn column(&self, bytes: usize) -> ProgramResult<LocalSpan<f64>> {
        Ok(self.memory.span(self.grid.fabric(), 0, bytes / size_of::<f64>())?)
    }

    pub(super) async fn send(&self, to: usize, bytes: usize) -> ProgramResult<()> {
        let column = self.column(bytes)?;
        let matrix = Matrix::registered(&column, column.len(), 1, column.len())?;
        Ok(self.grid.send(matrix, (0, to)).await?)
    }

    pub(super) async fn receive(&self, from: usize, bytes: usize) -> ProgramResult<()> {
        let column = self.column(bytes)?;
        let matrix = MatrixMut::registered(&column, column.len(), 1, column.len())?;
        Ok(self.grid.recv(matrix, (0, from)).await?)
    }

    pub(super) async fn barrier(&self) -> ProgramResult<()> {
        Ok(self.grid.barrier(Scope::All).await?)
    }

    pub(super) async fn broadcast(&self, bytes: usize, root: usize) -> ProgramResult<()> {
        let column = self.column(bytes)?;
        if self.grid.column() == root {
            let matrix = Matrix::registered(&column, column.len(), 1, column.len())?;
            self.grid.broadcast_send(Scope::All, Topology::Default, matrix).await?;
        } else {
            let matrix = MatrixMut::registered(&column, column.len(), 1, column.len())?;
            self.grid.broadcast_recv(Scope::All, Topology::Default, matrix, (0, root)).await?;
        }
        Ok(())
    }

    pub(super) async fn reduce(&self, bytes: usize, root: usize) -> ProgramResult<()> {
        let column = self.column(bytes)?;
        let matrix = MatrixMut::registered(&column, column.len(), 1, column.len())?;
        Ok(self.grid.sum(Scope::All, Topology::Default, matrix, Some((0, root))).await?)
    }

    pub(super) async fn end(self) -> ProgramResult<()> {
        self.grid.exit().await?;
        Ok(self.blacs.exit().await?)
    }
}
