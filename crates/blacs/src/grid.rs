//! Contexts: grids of processes.

use crate::{
    BlacsError, GridMap, Parameters, Result, Topology,
    lines::Lines,
    losses::{Losses, Silence},
    scope::{Counters, Scope},
};
use core::future::Future;
use fmpl::{Communicator, Fmpl, FmplError};
use rdma_fabric::{Fabric, Rank, provider::Boxed};

/// A grid of processes, which exchange messages only with each other (a *context*).
///
/// [`Options::threads`](crate::Options::threads) selects the threads that may call. All members of a
/// scope make the calls for that scope in the same order.
#[derive(Debug)]
pub struct Grid {
    /// Members are numbered along the rows.
    communicator: Communicator,
    lines: Lines,
    map: GridMap,
    row: usize,
    column: usize,
    parameters: Parameters,
    pub(crate) counters: Counters,
    pub(crate) losses: Losses,
}

/// The key by which the processes of a new grid find each other.
pub(crate) struct Family {
    pub(crate) colour: Option<u64>,
    pub(crate) order: u64,
}

impl Family {
    /// Returns the key of process `me` in a map.
    pub(crate) fn of(map: &GridMap, me: usize) -> Self {
        let place = map.coordinates(me);
        let order = place.map_or(0, |(row, column)| (row * map.columns() + column) as u64);
        Family { colour: place.map(|_| map.hash()), order }
    }

    /// Returns the key of the process at `place` of a row or column.
    pub(crate) fn of_line(map: &GridMap, line: usize, place: usize) -> Self {
        Family { colour: Some(map.hash_of_line(line)), order: place as u64 }
    }
}

impl Grid {
    pub(crate) async fn new(communicator: Communicator, lines: Lines, map: GridMap, silence: Silence) -> Result<Self> {
        let (rows, columns, members) = (map.rows(), map.columns(), communicator.len());
        if members != rows * columns {
            // Other processes may still be creating the grid.
            communicator.finish().await?;
            lines.finish().await?;
            return Err(BlacsError::DifferentGrids { rows, columns, members });
        }
        let (row, column) = (communicator.me() / columns, communicator.me() % columns);
        let losses = Losses::new(&communicator, (row, column), columns, silence)?;
        let (parameters, counters) = (Parameters::default(), Counters::new(members));
        Ok(Grid { communicator, lines, map, row, column, parameters, counters, losses })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.map.rows()
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.map.columns()
    }

    /// Returns the caller's row.
    pub fn row(&self) -> usize {
        self.row
    }

    /// Returns the caller's column.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the caller's row and column (`blacs_gridinfo`).
    pub fn me(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    /// Returns the number of the process at (row, column) among the processes from which the grid
    /// was created (`blacs_pnum`): its rank, if these were all processes of the job. `None` outside
    /// the grid.
    pub fn number(&self, row: usize, column: usize) -> Option<usize> {
        self.map.number(row, column)
    }

    /// Returns row and column of a process by its number (`blacs_pcoord`).
    pub fn coordinates(&self, number: usize) -> Option<(usize, usize)> {
        self.map.coordinates(number)
    }

    /// Returns the rank of the process at (row, column); `None` outside the grid.
    pub fn rank(&self, row: usize, column: usize) -> Option<Rank> {
        let member = (row < self.rows() && column < self.columns()).then(|| row * self.columns() + column);
        self.communicator.rank(member?).ok()
    }

    /// Returns the parameters of the grid (`blacs_get`, 11 to 16).
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Sets the parameters (`blacs_set`), to the same values at all processes of the grid.
    ///
    /// # Errors
    /// [`BlacsError::BadParameter`]; no parameter changes.
    pub fn set_parameters(&mut self, parameters: Parameters) -> Result<()> {
        self.parameters = parameters.checked()?;
        Ok(())
    }

    /// Returns the underlying fabric.
    pub fn fabric(&self) -> &Fabric {
        self.communicator.fabric()
    }

    pub(crate) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Returns the communicator by which the network broadcasts to all of a scope in the default
    /// topology; its members have their numbers in the scope.
    pub(crate) fn multicasting(&self, scope: Scope, topology: Topology) -> Option<&Communicator> {
        match scope {
            _ if topology != Topology::Default => None,
            Scope::All => Some(&self.communicator).filter(|all| all.multicasts()),
            Scope::Row | Scope::Column => self.lines.get(scope),
        }
    }

    /// Returns the caller's number along the rows.
    pub(crate) fn member(&self) -> usize {
        self.communicator.me()
    }

    /// Returns row and column of a member by its number along the rows.
    pub(crate) fn place_of(&self, member: usize) -> (usize, usize) {
        (member / self.columns(), member % self.columns())
    }

    pub(crate) async fn split(&mut self, fmpl: &Fmpl, colour: Option<u64>, order: u64) -> Result<Option<Communicator>> {
        Ok(fmpl.split(&mut self.communicator, colour, order).await?)
    }

    /// Waits until all members of the caller's scope have called this function (`blacs_barrier`).
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if a member is lost.
    pub async fn barrier(&self, scope: Scope) -> Result<()> {
        match scope {
            Scope::All => Ok(self.communicator.barrier().await?),
            Scope::Row | Scope::Column => self.losses.or_lost(scope, self.meet(scope)).await,
        }
    }

    /// Frees the memory of buffered messages that have been received by now (`blacs_freebuff`).
    /// With `wait`, it first waits until all messages that the caller has sent in this grid have
    /// been received, so it frees all of it.
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if a receiver is lost.
    pub async fn free_buffers(&self, wait: bool) -> Result<()> {
        if wait {
            self.drain().await?;
        }
        Ok(self.communicator.trim_spool()?)
    }

    /// Waits until all messages that the caller has sent have been received.
    async fn drain(&self) -> Result<()> {
        loop {
            match self.communicator.all_fetched().await {
                // The receiver reports this error.
                Err(FmplError::TooLong { .. }) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Frees the grid (`blacs_gridexit`) once all messages that the caller has sent have been received
    /// and all processes of the grid have called this function. Collective over the grid.
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if a member is lost.
    pub fn exit(self) -> impl Future<Output = Result<()>> + Send {
        let ended: Boxed<'static, Result<()>> = Box::pin(async move {
            let drained = self.drain().await;
            let finished = self.communicator.finish().await.map_err(BlacsError::from);
            drained.and(finished).and(self.lines.finish().await)
        });
        ended
    }
}
