//! The library on one rank.

use crate::{BlacsError, Grid, GridMap, Order, Result, grid::Family, losses::Silence, scope::INDICES};
use core::{future::Future, time::Duration};
use fmpl::{Fmpl, Threads};
use rdma_fabric::{Fabric, provider::Boxed};

/// How long a send waits for a receiver that is far behind, before it returns all the same. Processes
/// that share a CPU take turns within that time.
const PATIENCE: Duration = Duration::from_micros(500);

/// What [`Blacs::begin_with`] sets. All processes give the same values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Options {
    threads: Threads,
}

impl Options {
    /// Sets which threads may use the grids: the one that begins, unless this says otherwise.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }
}

/// BLACS, begun on this rank. A process's number is its rank (`blacs_pinfo`).
#[derive(Debug)]
pub struct Blacs {
    fmpl: Fmpl,
    silence: Silence,
}

impl Blacs {
    /// Begins with the default options. Collective over the job.
    ///
    /// # Errors
    /// As [`Blacs::begin_with`].
    pub fn begin(fabric: &Fabric) -> impl Future<Output = Result<Self>> + use<> {
        Self::begin_with(fabric, Options::default())
    }

    /// Begins. Collective over the job.
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if memory runs out, if options differ or if a rank is lost.
    pub fn begin_with(fabric: &Fabric, options: Options) -> impl Future<Output = Result<Self>> + use<> {
        let fabric = fabric.clone();
        let begun: Boxed<'static, Result<Self>> = Box::pin(async move {
            // Any member may be met, and a send never waits for its receive.
            let areas = fmpl::Options::default().indices(INDICES).any_indices(0).peers(fabric.ranks());
            let options = areas.spool(0, Duration::ZERO).growing(PATIENCE).threads(options.threads);
            Ok(Blacs { fmpl: Fmpl::init_with(&fabric, options).await?, silence: Silence::new(&fabric)? })
        });
        begun
    }

    /// Returns this process's number.
    pub fn me(&self) -> usize {
        self.fmpl.world().me()
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.fmpl.world().len()
    }

    /// Returns the fabric that it works over.
    pub fn fabric(&self) -> &Fabric {
        self.fmpl.world().fabric()
    }

    /// Makes a grid of the first processes (`blacs_gridinit`); `None` for all others. Collective over
    /// the job.
    ///
    /// # Errors
    /// [`BlacsError::BadExtent`], [`BlacsError::TooFewProcesses`]; [`BlacsError::DifferentGrids`];
    /// [`BlacsError::Fmpl`].
    pub fn grid(
        &mut self,
        order: Order,
        rows: usize,
        columns: usize,
    ) -> impl Future<Output = Result<Option<Grid>>> + Send + use<'_> {
        let map = GridMap::in_order(order, rows, columns, self.processes());
        self.make(map)
    }

    /// Makes a grid of the processes that a map names (`blacs_gridmap`); `None` for those that it does
    /// not name. Collective over the job; processes may give different maps if no process is named by
    /// two of them.
    ///
    /// # Errors
    /// [`BlacsError::NoSuchProcess`], [`BlacsError::TooFewProcesses`]; [`BlacsError::DifferentGrids`];
    /// [`BlacsError::Fmpl`].
    pub fn map(&mut self, map: &GridMap) -> impl Future<Output = Result<Option<Grid>>> + Send + use<'_> {
        let map = map.checked(self.processes()).map(|()| map.clone());
        self.make(map)
    }

    fn make(&mut self, map: Result<GridMap>) -> Boxed<'_, Result<Option<Grid>>> {
        Box::pin(async move {
            let map = map?;
            let Family { colour, order } = Family::of(&map, self.me());
            let made = self.fmpl.create(colour, order).await?;
            let Some(communicator) = made else { return Ok(None) };
            Grid::new(communicator, map, self.silence.clone()).await.map(Some)
        })
    }

    /// Makes a grid of the first processes of another one, as [`Blacs::grid`] does (`blacs_gridinit` from
    /// what `blacs_get(.., 10, ..)` gives). Processes are numbered along the rows of `parent`, from 0.
    /// Collective over `parent`.
    ///
    /// # Errors
    /// As [`Blacs::grid`].
    pub fn grid_of<'a>(
        &'a mut self,
        parent: &'a mut Grid,
        order: Order,
        rows: usize,
        columns: usize,
    ) -> impl Future<Output = Result<Option<Grid>>> + Send + use<'a> {
        let map = GridMap::in_order(order, rows, columns, parent.rows() * parent.columns());
        self.make_of(parent, map)
    }

    /// Makes a grid of the processes of another one that a map names, as [`Blacs::map`] does. Processes
    /// are numbered along the rows of `parent`, from 0. Collective over `parent`.
    ///
    /// # Errors
    /// As [`Blacs::map`].
    pub fn map_of<'a>(
        &'a mut self,
        parent: &'a mut Grid,
        map: &GridMap,
    ) -> impl Future<Output = Result<Option<Grid>>> + Send + use<'a> {
        let map = map.checked(parent.rows() * parent.columns()).map(|()| map.clone());
        self.make_of(parent, map)
    }

    fn make_of<'a>(&'a mut self, parent: &'a mut Grid, map: Result<GridMap>) -> Boxed<'a, Result<Option<Grid>>> {
        Box::pin(async move {
            let map = map?;
            let Family { colour, order } = Family::of(&map, parent.member());
            let made = parent.split(&self.fmpl, colour, order).await?;
            let Some(communicator) = made else { return Ok(None) };
            Grid::new(communicator, map, self.silence.clone()).await.map(Some)
        })
    }

    /// Ends (`blacs_exit`), when all processes have come here. Collective over the job.
    ///
    /// Messages that this process has sent in a grid are lost with the grid if they were not received:
    /// see [`Grid::exit`] and [`Grid::free_buffers`].
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if a rank is lost.
    pub fn exit(self) -> impl Future<Output = Result<()>> + Send {
        let ended: Boxed<'static, Result<()>> =
            Box::pin(async move { self.fmpl.finalize().await.map_err(BlacsError::from) });
        ended
    }
}
