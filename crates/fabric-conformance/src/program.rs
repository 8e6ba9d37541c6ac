//! Programs of cases behind a pointer, so that the code that runs them is compiled once and not for
//! each case.

use crate::RankOutcome;
use rdma_fabric::{Fabric, Program, ProgramResult, Rank};
use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

/// A rank's run of a case.
pub(crate) type CaseRun = Pin<Box<dyn Future<Output = ProgramResult<String>>>>;

/// The program of any case. Each of its ranks returns a text.
#[derive(Clone)]
pub struct CaseProgram(pub(crate) Arc<dyn Fn(Fabric) -> CaseRun + Send + Sync>);

impl CaseProgram {
    /// Wraps a program whose ranks return a text.
    pub fn new<P: Program<Out = String> + Clone + Send + 'static>(program: P) -> Self {
        CaseProgram(Arc::new(move |fabric| {
            let program = program.clone();
            Box::pin(async move { program.run(fabric).await })
        }))
    }

    /// Wraps a program whose ranks return nothing.
    pub fn silent<P: Program<Out = ()> + Clone + Send + 'static>(program: P) -> Self {
        CaseProgram(Arc::new(move |fabric| {
            let program = program.clone();
            Box::pin(async move { program.run(fabric).await.map(|()| String::new()) })
        }))
    }
}

impl fmt::Debug for CaseProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CaseProgram")
    }
}

impl Program for CaseProgram {
    type Out = String;

    async fn run(&self, fabric: Fabric) -> ProgramResult<String> {
        (self.0)(fabric).await
    }
}

/// A [`CaseProgram`] that records the outcome of each of its ranks, for providers that run all
/// ranks in this process.
#[derive(Debug)]
pub struct RecordedProgram {
    program: CaseProgram,
    outcomes: Mutex<Vec<RankOutcome>>,
}

impl RecordedProgram {
    pub(crate) fn new(program: CaseProgram, ranks: usize) -> Self {
        RecordedProgram { program, outcomes: Mutex::new(vec![RankOutcome::Silent; ranks]) }
    }

    pub(crate) fn outcomes(self) -> Vec<RankOutcome> {
        self.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, rank: Rank, outcome: RankOutcome) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)[rank.index()] = outcome;
    }
}

impl Program for RecordedProgram {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let rank = fabric.rank();
        let unwinding = Unwinding { noted: self, rank };
        let ended = self.program.run(fabric).await;
        std::mem::forget(unwinding);
        match ended {
            Ok(text) => {
                self.note(rank, RankOutcome::Ended(text));
                Ok(())
            }
            Err(error) => {
                self.note(rank, RankOutcome::Failed(error.to_string()));
                Err(error)
            }
        }
    }
}

/// Records a panic. If it is dropped without one, because a waiting rank is dropped, it records
/// nothing.
struct Unwinding<'a> {
    noted: &'a RecordedProgram,
    rank: Rank,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.noted.note(self.rank, RankOutcome::Panicked);
        }
    }
}
