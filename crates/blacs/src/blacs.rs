//! The BLACS library on one rank.

use crate::{BlacsError, Grid, GridMap, Order, Result, grid::Family, lines::Lines, losses::Silence, scope::INDICES};
use core::{future::Future, time::Duration};
use fmpl::{Fmpl, Threads};
use rdma_fabric::{Fabric, provider::Boxed};

/// The maximum time for which a send waits for a receiver that lags behind, before it returns
/// anyway. It is long enough for processes that share a CPU to be scheduled.
const PATIENCE: Duration = Duration::from_micros(500);

/// The options of [`Blacs::begin_with`]. All processes pass the same values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Options {
    threads: Threads,
    time_out: Duration,
}

impl Options {
    /// Sets the minimum time for which a send waits for its receive before it copies the matrix and
    /// returns (FMPL's time-out); 0 by default. A matrix whose receive is posted in time is sent
    /// without a copy (paper, section 5.3).
    pub fn time_out(mut self, time_out: Duration) -> Self {
        self.time_out = time_out;
        self
    }

    /// Sets which threads may use the grids; by default only the thread that initializes BLACS.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }
}

/// BLACS, initialized on this rank. The number of a process is its rank (`blacs_pinfo`).
#[derive(Debug)]
pub struct Blacs {
    fmpl: Fmpl,
    silence: Silence,
}

impl Blacs {
    /// Initializes BLACS with the default options. Collective over the job.
    ///
    /// # Errors
    /// As [`Blacs::begin_with`].
    pub fn begin(fabric: &Fabric) -> impl Future<Output = Result<Self>> + use<> {
        Self::begin_with(fabric, Options::default())
    }

    /// Initializes BLACS. Collective over the job.
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if memory runs out, if the options differ between ranks or if a rank is
    /// lost.
    pub fn begin_with(fabric: &Fabric, options: Options) -> impl Future<Output = Result<Self>> + use<> {
        let fabric = fabric.clone();
        let begun: Boxed<'static, Result<Self>> = Box::pin(async move {
            // Any two members may exchange messages, and a send never waits for its receive.
            let areas = fmpl::Options::default().indices(INDICES).any_indices(0).peers(fabric.ranks());
            let options = areas.spool(0, options.time_out).growing(PATIENCE).threads(options.threads);
            Ok(Blacs { fmpl: Fmpl::init_with(&fabric, options).await?, silence: Silence::new(&fabric)? })
        });
        begun
    }

    /// Returns the number of this process.
    pub fn me(&self) -> usize {
        self.fmpl.world().me()
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.fmpl.world().len()
    }

    /// Returns the underlying fabric.
    pub fn fabric(&self) -> &Fabric {
        self.fmpl.world().fabric()
    }

    /// Creates a grid of the first processes (`blacs_gridinit`); returns `None` at all other
    /// processes. Collective over the job.
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

    /// Creates a grid of the processes listed in a map (`blacs_gridmap`); returns `None` at
    /// processes that are not in the map. Collective over the job; processes may pass different
    /// maps if no process is in two of these maps.
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
            let lines = Lines::of(&mut self.fmpl, &map).await?;
            let Some(communicator) = made else { return Ok(None) };
            Grid::new(communicator, lines, map, self.silence.clone()).await.map(Some)
        })
    }

    /// Creates a grid of the first processes of another grid, as [`Blacs::grid`] does
    /// (`blacs_gridinit` with the system context that `blacs_get(.., 10, ..)` returns). Processes are
    /// numbered along the rows of `parent`, from 0. Collective over `parent`.
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

    /// Creates a grid of those processes of another grid listed in a map, as [`Blacs::map`] does.
    /// Processes are numbered along the rows of `parent`, from 0. Collective over `parent`.
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
            Grid::new(communicator, Lines::default(), map, self.silence.clone()).await.map(Some)
        })
    }

    /// Shuts BLACS down (`blacs_exit`) once all processes have called this function. Collective over
    /// the job.
    ///
    /// Messages that this process has sent in a grid and that were not received are lost with the
    /// grid: see [`Grid::exit`] and [`Grid::free_buffers`].
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if a rank is lost.
    pub fn exit(self) -> impl Future<Output = Result<()>> + Send {
        let ended: Boxed<'static, Result<()>> =
            Box::pin(async move { self.fmpl.finalize().await.map_err(BlacsError::from) });
        ended
    }
}
