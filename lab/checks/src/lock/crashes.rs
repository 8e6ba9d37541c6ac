//! The locks with queues when ranks die: they are not recovered, but no rank waits forever, and no
//! rank enters together with a dead holder.
//!
//! A rank that depends on one that died receives an error or acquires the lock. A rank that
//! receives the error ends; so do the others, because they depend on every rank.

use super::{
    mutants::{assert_idle, lock_words},
    program::{
        HOME, READERS,
        Role::{self, *},
        WRITERS, WRITES, of_any_lock,
    },
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{Explorer, Fabric, Probe, Rank};
use rdma_fabric::{FabricError, ProgramResult};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{BargingLock, FairLock, PackedLock, RpLock, WritersFirstLock},
};
use std::error::Error;

/// Acquires the lock, reads or changes the data, and releases it. Only a rank that dies inside
/// leaves facts stating that it is inside.
pub(super) async fn once<L: RmaLock>(fabric: Fabric, role: Role) -> ProgramResult<()> {
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

/// Returns whether an error of a lock or a fabric reports the loss of a rank.
pub(super) fn names_a_loss(error: &(dyn Error + 'static)) -> bool {
    let of_lock = |error: &LockError| match error {
        LockError::Fabric(error) => matches!(error, FabricError::PeerLost { .. }),
        LockError::Broken(error) => names_a_loss(&**error),
        _ => false,
    };
    matches!(error.downcast_ref(), Some(FabricError::PeerLost { .. })) || error.downcast_ref().is_some_and(of_lock)
}

/// Tests whether an error is accepted as an expected end, like the loss of a rank.
type Excuse = fn(&(dyn Error + 'static)) -> bool;

fn explorer(roles: &'static [Role], mortal: &[u32]) -> Explorer<'static> {
    let explorer = of_any_lock(roles).at_end("idle unless somebody died", |view| {
        let died = (0..3).any(|rank| view.is_lost(Rank::new(rank)));
        if !died {
            assert_idle(lock_words(view, 0, u64::MAX));
        }
        true
    });
    mortal.iter().fold(explorer, |explorer, rank| {
        let rank = Rank::new(*rank);
        explorer.mortal(rank).possible("it dies", move |view| view.is_lost(rank))
    })
}

fn exploration<L: RmaLock>(
    name: String,
    (roles, mortal): (&'static [Role], &'static [u32]),
    expected: Expected,
    excuse: Excuse,
) -> Exploration {
    let program = move |fabric: Fabric| {
        let role = roles[fabric.rank().index()];
        Box::pin(async move {
            match once::<L>(fabric, role).await {
                Err(error) if excuse(&*error) => Ok(()),
                end => end,
            }
        }) as Run
    };
    Exploration::new(name, expected, move || explorer(roles, mortal), program)
}

/// Jobs of two ranks.
const PAIRS: [(&[Role], &[u32]); 4] =
    [(&[Read, Write], &[0]), (&[Read, Write], &[1]), (&[Write, Read], &[1]), (&[Write, Write], &[1])];

/// Returns the explorations of a lock's [`PAIRS`].
fn pairs<L: RmaLock>() -> [Exploration; 4] {
    PAIRS.map(|(roles, mortal)| {
        let name = format!("{}: {roles:?}, mortal {mortal:?}", L::NAME);
        exploration::<L>(name, (roles, mortal), Expected::Exhausted { at_least: 400 }, names_a_loss)
    })
}

/// Returns the explorations of the locks with queues when ranks die: most are of the
/// reader-preference lock.
pub(super) fn explorations() -> Vec<Exploration> {
    const JOBS: [(&[Role], &[u32], u64); 5] = [
        (&[Read, Write], &[0, 1], 500),
        (&[Write, Write], &[0, 1], 500),
        (&[Read, Write, Write], &[1], 50_000),
        (&[Read, Read, Write], &[2], 230_000),
        (&[Write, Write, Read], &[2], 25_000),
    ];
    let excused = JOBS.map(|(roles, mortal, at_least)| {
        let name = format!("{roles:?}, mortal {mortal:?}");
        let size = if at_least > 40_000 { Size::Quick } else { Size::Test };
        exploration::<RpLock>(name, (roles, mortal), Expected::Exhausted { at_least }, names_a_loss).of_size(size)
    });
    // Here the loss is reported as an error and not excused.
    let told = Expected::Violated { saying: "rank 1 was lost", within: u64::MAX };
    let told = exploration::<RpLock>("a loss that is not excused".into(), (&[Write, Write], &[1]), told, |_| false);
    let of_each = [
        pairs::<RpLock>(),
        pairs::<PackedLock>(),
        pairs::<BargingLock>(),
        pairs::<WritersFirstLock>(),
        pairs::<FairLock>(),
    ];
    of_each.into_iter().flatten().chain(excused).chain([told]).collect()
}
