//! A rank that may die at any moment of an exploration: another rank's call may fail with an error
//! that names it.

use explore::{Explorer, Probe};
use rdma_fabric::{FabricError, ProgramResult, Rank};
use std::error::Error;

/// The fact that counts the ranks whose calls have named a dead rank.
pub(crate) const NAMED: u32 = 200;

/// Lets a rank die, if one is given. Its death, and the report of its loss to another rank, must be possible.
pub(crate) fn mortal<'a>(explorer: Explorer<'a>, rank: Option<u32>) -> Explorer<'a> {
    let Some(lost) = rank.map(Rank::new) else { return explorer };
    explorer
        .mortal(lost)
        .possible("it dies", move |view| view.is_lost(lost))
        .possible("somebody gets its loss", |view| view.fact(NAMED) > 0)
}

/// Turns an error that names the rank that may die into success, and counts it. The protocol's own
/// errors are of type `E`.
pub(crate) fn told<E>(probe: &Probe, ended: ProgramResult<()>, mortal: Option<u32>) -> ProgramResult<()>
where
    E: Error + From<FabricError> + PartialEq + 'static,
{
    let named = |error: &(dyn Error + Send + Sync + 'static), rank| {
        let loss = FabricError::PeerLost { rank: Rank::new(rank) };
        error.downcast_ref() == Some(&loss) || error.downcast_ref() == Some(&E::from(loss))
    };
    match (ended, mortal) {
        (Err(error), Some(rank)) if named(&*error, rank) => {
            probe.add(NAMED, 1);
            Ok(())
        }
        (ended, _) => ended,
    }
}
