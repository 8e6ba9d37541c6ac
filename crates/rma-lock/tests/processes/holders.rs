//! Locks that do not recover, when a holder or a bystander is killed: ranks that depend on the dead
//! rank receive an error, no rank enters while the dead rank holds the lock, and no rank waits for
//! ever. With back-off locks the owner of the hold is unknown, and the error is a timeout.

use crate::job::{launch, outlive};
use checks::killed::Outcome;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use rma_lock::{Lock, LockError, RwLock, locks::LockKind};
use std::time::Duration;

const RANKS: usize = 3;
const HOME: Rank = Rank::new(0);
const VICTIM: Rank = Rank::new(1);
/// Ten times the expected time until a noticed loss is reported, and the time for which ranks back
/// off.
const PATIENCE: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(200)];

/// Returns whether ranks back off, so that they cannot determine the owner of a hold.
fn backs_off(kind: LockKind) -> bool {
    matches!(kind, LockKind::BackOff | LockKind::TwoLevels | LockKind::ByNodeBackOff)
}

/// Plays one rank's part with the lock of that name: after the victim has died with the hold
/// `held`, the others write, one after the other.
pub(crate) async fn play(fabric: Fabric, lock: &str, held: &str) -> ProgramResult<String> {
    let kind: LockKind = lock.parse()?;
    let patience = PATIENCE[usize::from(backs_off(kind))];
    let mut world = Group::world(&fabric).await?;
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let dies = fabric.rank() == VICTIM;
    let survivors = world.split((!dies).then_some(0), 0).await?;
    // Every rank uses the lock once: this does not wait, and leaves no trace.
    lock.write().await?.release().await?;
    world.barrier().await?;
    let reader = if dies && held == "reader" { Some(lock.read().await?) } else { None };
    let writer = if dies && held == "writer" { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    outlive(&fabric, VICTIM, &region, (reader, writer)).await?;
    let mut survivors = survivors.ok_or("the victim is alive")?;
    let mut end = Ok(());
    for turn in 0..survivors.len() {
        if turn == survivors.me() {
            let deadline = fabric.now() + patience;
            end = async { lock.write_before(deadline).await?.release().await }.await;
        }
        // The memory of ranks that received the error is still needed.
        survivors.barrier().await?;
    }
    match end {
        Ok(()) => Ok("got in".to_owned()),
        Err(error) if is_told(&error) => Ok("was told".to_owned()),
        Err(LockError::TimedOut) => Ok("waited".to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether an error reports the loss of the victim.
fn is_told(error: &LockError) -> bool {
    match error {
        LockError::Fabric(error) => *error == FabricError::PeerLost { rank: VICTIM },
        LockError::Broken(cause) => is_told(cause),
        _ => false,
    }
}

#[test]
fn a_killed_holder_or_bystander_leaves_nobody_waiting() {
    for kind in LockKind::ALL.into_iter().filter(|kind| *kind != LockKind::Recoverable) {
        for held in ["nothing", "reader", "writer"] {
            let report = launch(RANKS, &format!("holder {} {held}", kind.name()));
            for (rank, outcome) in report.outcomes.into_iter().enumerate() {
                match outcome {
                    Outcome::Silent if rank == VICTIM.index() => {}
                    Outcome::Ended(text) if text == "was told" => {}
                    Outcome::Ended(text) if text == "got in" && held == "nothing" => {}
                    Outcome::Ended(text) if text == "waited" && held != "nothing" && backs_off(kind) => {}
                    other => panic!("{kind}, {VICTIM} died holding {held}: rank {rank} ended with {other:?}"),
                }
            }
        }
    }
}
