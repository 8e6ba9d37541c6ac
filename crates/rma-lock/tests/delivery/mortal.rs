//! The reader-preference lock when ranks die: it is not recovered, but nobody is left waiting, and nobody comes in beside the dead.
//!
//! Whoever depends on a rank that died is told so, or gets the lock. A rank that has been told ends; the others are told as well, since they
//! depend on everybody.

use crate::{
    mutant::assert_idle,
    program::{
        Role::{self, *},
        of_any_lock,
    },
};
use explore::{Explorer, Fabric, Probe, Rank, Report};
use rdma_fabric::{FabricError, ProgramResult};
use rma_lock::{Guard, LockError, RmaLock, locks::RpLock};
use std::error::Error;

const HOME: Rank = Rank::new(0);

/// Facts, as [`of_any_lock`] knows them.
const WRITERS: u32 = 0;
const READERS: u32 = 1;
const WRITES: u32 = 2;

/// Take the lock, look at the data or change it, let go. Who is inside leaves the facts so only by dying.
pub(crate) async fn once<L: RmaLock>(fabric: Fabric, role: Role) -> ProgramResult<()> {
    let probe = Probe::of(&fabric);
    let lock = L::symmetric(&fabric, HOME).await?;
    let shared = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(shared.at(HOME, 0))?;
    if role == Write {
        let guard = lock.write().await?;
        probe.add(WRITERS, 1);
        let change = async {
            let before = fabric.get_word(&word).await?;
            assert_eq!(before, probe.add(WRITES, 1), "visibility: a writer missed a released write");
            fabric.put_word(&word, before + 1).await
        };
        let change = change.await;
        probe.subtract(WRITERS, 1);
        change?;
        guard.release().await?;
    } else {
        let guard = lock.read().await?;
        probe.add(READERS, 1);
        let seen = fabric.get_word(&word).await;
        let written = probe.get(WRITES);
        probe.subtract(READERS, 1);
        assert_eq!(seen?, written, "visibility: a reader missed a write");
        guard.release().await?;
    }
    Ok(())
}

pub(crate) fn names_a_loss(error: &(dyn Error + 'static)) -> bool {
    let of_lock = |error: &LockError| match error {
        LockError::Fabric(error) => matches!(error, FabricError::PeerLost { .. }),
        LockError::Broken(error) => names_a_loss(&**error),
        _ => false,
    };
    matches!(error.downcast_ref(), Some(FabricError::PeerLost { .. })) || error.downcast_ref().is_some_and(of_lock)
}

/// What becomes of an error: the loss of a rank is none.
type Excuse = fn(&(dyn Error + 'static)) -> bool;

fn explore(roles: &'static [Role], mortal: &[u32], excuse: Excuse) -> Report {
    let program = move |fabric: Fabric| async move {
        let role = roles[fabric.rank().index()];
        match once::<RpLock>(fabric, role).await {
            Err(error) if excuse(&*error) => Ok(()),
            end => end,
        }
    };
    let explorer = of_any_lock(roles).at_end("idle unless somebody died", |view| {
        let died = (0..3).any(|rank| view.is_lost(Rank::new(rank)));
        let words = view.words().filter(|(addr, _)| !died && addr.region.index == 0);
        assert_idle(words.map(|(addr, value)| (addr.rank.index(), addr.offset as usize / 8, value)));
        true
    });
    let died = |explorer: Explorer<'static>, rank: &u32| {
        let rank = Rank::new(*rank);
        explorer.mortal(rank).possible("it dies", move |view| view.is_lost(rank))
    };
    mortal.iter().fold(explorer, died).run(program)
}

fn exhaust(roles: &'static [Role], mortal: &[u32], at_least: u64) {
    let report = explore(roles, mortal, names_a_loss);
    println!("{roles:?}, mortal {mortal:?}: {report}");
    report.expect_exhausted();
    assert!(report.states >= at_least, "{roles:?}: {} states", report.states);
}

#[test]
fn a_holder_or_waiter_dies_and_nobody_waits_for_ever() {
    exhaust(&[Read, Write], &[0], 500);
    exhaust(&[Read, Write], &[1], 500);
    exhaust(&[Write, Read], &[1], 500);
    exhaust(&[Write, Write], &[1], 500);
    exhaust(&[Read, Write], &[0, 1], 500);
    exhaust(&[Write, Write], &[0, 1], 500);
}

#[test]
fn one_of_three_dies_and_nobody_waits_for_ever() {
    exhaust(&[Read, Write, Write], &[1], 50_000);
    exhaust(&[Read, Read, Write], &[2], 300_000);
    exhaust(&[Write, Write, Read], &[2], 25_000);
}

/// The first case, with an error that is told and not excused.
#[test]
fn somebody_is_told() {
    let report = explore(&[Write, Write], &[1], |_| false);
    assert!(report.expect_violation().what.contains("rank 1 was lost"), "{report}");
}
