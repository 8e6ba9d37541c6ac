//! How long a lock has to live: until nobody uses it any more, which a last barrier tells. Its words are gone with the program of the rank that has them.

use crate::program::Role::{self, *};
use explore::{Explorer, Fabric, Probe, Rank, Report};
use rdma_fabric::{Group, ProgramResult};
use rma_lock::{
    Guard, RmaLock,
    locks::{FairLock, PackedLock, RpLock, WritersFirstLock},
};

const HOME: Rank = Rank::new(0);
const WRITERS: u32 = 0;

/// Take the lock once, let go, and meet the others or not.
async fn once<L: RmaLock>(fabric: Fabric, role: Role, meets: bool) -> ProgramResult<()> {
    let lock = L::symmetric(&fabric, HOME).await?;
    if role == Write {
        let guard = lock.write().await?;
        assert_eq!(Probe::of(&fabric).add(WRITERS, 1), 0, "two writers");
        Probe::of(&fabric).subtract(WRITERS, 1);
        guard.release().await?;
    } else {
        let guard = lock.read().await?;
        assert_eq!(Probe::of(&fabric).get(WRITERS), 0, "a writer beside a reader");
        guard.release().await?;
    }
    if meets {
        Group::world(&fabric).await?.barrier().await?;
    }
    Ok(())
}

fn explore<L: RmaLock>(roles: &'static [Role], meets: bool) -> Report {
    Explorer::new(roles.len()).run(move |fabric| {
        let role = roles[fabric.rank().index()];
        once::<L>(fabric, role, meets)
    })
}

fn ends<L: RmaLock>() {
    for roles in [&[Write, Read], &[Read, Write], &[Write, Write]] {
        let report = explore::<L>(roles, true);
        println!("{}, {roles:?}, behind a barrier: {report}", L::NAME);
        report.expect_exhausted();
    }
    let report = explore::<L>(&[Write, Write], false);
    let found = report.expect_violation();
    assert!(found.what.contains("was deregistered"), "{}: {found}", L::NAME);
    println!("{}, without: {} in {} moves", L::NAME, found.what, found.moves);
}

#[test]
fn behind_a_last_barrier_no_lock_is_missed() {
    ends::<RpLock>();
    ends::<PackedLock>();
    ends::<WritersFirstLock>();
    ends::<FairLock>();
}
