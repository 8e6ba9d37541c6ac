//! Ranks that are observed, and what is said when they can't be.

use observe::{Gathering, ObserveError, Part, say};
use rdma_fabric::{Fabric, FabricError, Program, Rank};
use tofu2_sim::{
    JobError,
    shm::{self, Endpoint},
};

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

impl From<FabricError> for LaunchError {
    fn from(error: FabricError) -> Self {
        LaunchError::Job(error.into())
    }
}

/// What is said instead of counters.
pub(crate) const UNOBSERVED: &str =
    "not observed: the ranks have their fabric from `launch_shared`; only those of `launch` can be";

/// Say so once a job, if somebody wants to observe it.
pub(crate) fn say_unobserved(endpoint: &Endpoint) {
    if endpoint.rank() == Rank::new(0) && Part::from_env().is_ok_and(|part| part.is_some()) {
        say(UNOBSERVED);
    }
}

/// Be a rank of a job of processes, observed if its launcher asks for it.
pub(crate) fn run_rank<P: Program>(endpoint: Endpoint, program: &P) -> Result<(), LaunchError> {
    let Some(part) = Part::from_env()? else { return Ok(shm::run_rank(endpoint, program).map(drop)?) };
    let gathering = Gathering::new(part.detail, 1);
    let ended = shm::run_rank(endpoint, &gathering.watch(program)).map(drop);
    // A rank that failed tells what it did until then, too.
    both(ended, part.write(&gathering.records()))
}

/// How the job ended, or else that it could not be reported. Of two errors the second goes to standard error.
pub(crate) fn both<T, E: Into<LaunchError>>(
    ended: Result<T, E>,
    told: Result<(), ObserveError>,
) -> Result<T, LaunchError> {
    match (ended, told) {
        (Ok(value), told) => told.map(|()| value).map_err(Into::into),
        (Err(error), told) => {
            if let Err(untold) = told {
                say(format_args!("error: {untold}"));
            }
            Err(error.into())
        }
    }
}
