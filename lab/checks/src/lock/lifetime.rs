//! The required lifetime of a lock: as long as any rank uses it, which a final barrier ensures. Its
//! words are dropped when the program of the rank that holds them ends.

use super::program::{
    HOME,
    Role::{self, *},
    WRITERS,
};
use crate::exploration::{Expected, Exploration, Run};
use explore::{Explorer, Fabric, Probe};
use rdma_fabric::{Group, ProgramResult};
use rma_lock::{
    Guard, RmaLock,
    locks::{FairLock, PackedLock, RpLock, WritersFirstLock},
};

/// Acquires and releases the lock once, then waits for the others at a barrier or not.
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

fn exploration<L: RmaLock>(roles: &'static [Role], meets: bool) -> Exploration {
    let (ends, expected) = match meets {
        true => ("behind a barrier", Expected::Exhausted { at_least: 1 }),
        false => ("without a barrier", Expected::Violated { saying: "was deregistered", within: u64::MAX }),
    };
    let program = move |fabric: Fabric| {
        let role = roles[fabric.rank().index()];
        Box::pin(once::<L>(fabric, role, meets)) as Run
    };
    Exploration::new(format!("{}: {roles:?}, {ends}", L::NAME), expected, move || Explorer::new(roles.len()), program)
}

fn of_lock<L: RmaLock>() -> [Exploration; 4] {
    [
        exploration::<L>(&[Write, Read], true),
        exploration::<L>(&[Read, Write], true),
        exploration::<L>(&[Write, Write], true),
        exploration::<L>(&[Write, Write], false),
    ]
}

/// Returns the explorations of the locks' lifetime.
pub(super) fn explorations() -> Vec<Exploration> {
    [of_lock::<RpLock>(), of_lock::<PackedLock>(), of_lock::<WritersFirstLock>(), of_lock::<FairLock>()].concat()
}
