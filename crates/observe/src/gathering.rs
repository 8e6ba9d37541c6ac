//! The observed ranks of this process.

use crate::{
    observer::observed,
    recorder::{RankRecord, Recorder},
};
use rdma_fabric::{Fabric, Program, ProgramResult, Rank};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of events that one rank keeps.
const EVENTS_OF_A_RANK: usize = 100_000;
/// The maximum number of events that all ranks of a process keep together, at 96 bytes each.
/// However, each rank keeps at least [`EVENTS_AT_LEAST`].
const EVENTS_OF_A_PROCESS: usize = 4_000_000;
const EVENTS_AT_LEAST: usize = 16;

/// The level of detail of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Counters.
    Stats,
    /// Counters and events.
    Trace,
}

/// Keeps the records of the ranks that run in this process.
#[derive(Debug)]
pub struct Gathering {
    /// The number of events that each rank keeps, if a trace is wanted.
    events: Option<usize>,
    recorders: Mutex<Vec<Recorder>>,
}

impl Gathering {
    /// Creates a `Gathering` for `ranks_here` ranks in this process. Each keeps the latest 100,000
    /// events, or fewer if all ranks together would keep more than 4,000,000.
    pub fn new(detail: Detail, ranks_here: usize) -> Self {
        let events = (EVENTS_OF_A_PROCESS / ranks_here.max(1)).clamp(EVENTS_AT_LEAST, EVENTS_OF_A_RANK);
        Gathering { events: (detail == Detail::Trace).then_some(events), recorders: Mutex::default() }
    }

    /// Wraps `program` so that each of its ranks is observed.
    pub fn watch<'a, P: Program>(&'a self, program: &'a P) -> Watched<'a, P> {
        Watched { program, gathering: self }
    }

    /// Begins the record of `rank`.
    pub fn begin(&self, rank: Rank) -> Recorder {
        let recorder = Recorder::new(rank, self.events);
        self.lock().push(recorder.clone());
        recorder
    }

    /// Returns the records of all ranks that began, as they are now, in rank order, whether or not
    /// the ranks succeeded.
    pub fn records(&self) -> Vec<RankRecord> {
        let mut records: Vec<_> = self.lock().iter().map(Recorder::record).collect();
        records.sort_by_key(|record| record.rank);
        records
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Recorder>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program whose ranks are observed; see [`Gathering::watch`].
#[derive(Debug)]
pub struct Watched<'a, P> {
    program: &'a P,
    gathering: &'a Gathering,
}

impl<P: Program> Program for Watched<'_, P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        let recorder = self.gathering.begin(fabric.rank());
        self.program.run(observed(&fabric, recorder)).await
    }
}
