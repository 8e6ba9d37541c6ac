//! Ranks in virtual time that are processes of their own: those of `onesided run --fabric virt`.

use crate::report::LaunchError;
use rdma_fabric::{Fabric, FabricError, Program};
use tofu2_sim::JobError;
use tofu2_stepped::SteppedRank;

/// Returns the fabric of this process if the simulator has started it.
///
/// # Errors
/// As [`SteppedRank::from_env`] and [`SteppedRank::fabric`].
pub(crate) fn attached() -> Result<Option<Fabric>, FabricError> {
    SteppedRank::from_env()?.map(|rank| rank.fabric()).transpose()
}

/// Runs `program` as the rank that the simulator has made this process. Returns false if it has not.
pub(crate) fn run<P: Program>(program: &P) -> Result<bool, LaunchError> {
    let Some(rank) = SteppedRank::from_env()? else { return Ok(false) };
    rank.run(program).map_err(|error| JobError::RankFailed { rank: rank.rank(), error })?;
    Ok(true)
}
