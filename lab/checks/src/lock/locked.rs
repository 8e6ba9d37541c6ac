//! Memory under a lock, accessed by copies, as on a fabric without mapped memory.

use super::program::{
    HOME, PACE, READERS,
    Role::{self, *},
    WRITERS, WRITES, in_time,
};
use crate::exploration::{Expected, Exploration, Run};
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{
    Excludes, Locked,
    locks::{BackOff, BackOffLock, RpLock},
};

/// Acquires the lock, reads or changes two words in two ranks' memory, and releases it: one rank's
/// part.
async fn once<L: Excludes>(fabric: Fabric, options: L::Options, probe: Probe, role: Role) -> ProgramResult<()> {
    let locked = Locked::<u64, L>::symmetric_with(&fabric, HOME, 1, options).await?;
    let last = Rank::new(fabric.ranks() as u32 - 1);
    if role == Write {
        let Some(mut guard) = in_time(locked.write().await.map_err(Into::into))? else { return Ok(()) };
        probe.add(WRITERS, 1);
        let (here, there) = (guard.get(HOME, 0..1).await?[0], guard.get(last, 0..1).await?[0]);
        let writes = probe.add(WRITES, 1);
        assert_eq!((here, there), (writes, writes), "visibility: a writer missed a released write");
        guard.put(HOME, 0, [here + 1]).await?;
        guard.put(last, 0, [there + 1]).await?;
        probe.subtract(WRITERS, 1);
        guard.release().await?;
    } else {
        let Some(guard) = in_time(locked.read().await.map_err(Into::into))? else { return Ok(()) };
        probe.add(READERS, 1);
        let (here, there) = (guard.get(HOME, 0..1).await?[0], guard.get(last, 0..1).await?[0]);
        let writes = probe.get(WRITES);
        assert_eq!((here, there), (writes, writes), "visibility: a reader missed a write");
        probe.subtract(READERS, 1);
        guard.release().await?;
    }
    Ok(())
}

/// A mutant that applies to any lock: without flushes, a holder's puts may arrive after the next
/// rank has acquired the lock.
#[derive(Debug)]
pub struct NotFlushed;

impl Mutant for NotFlushed {
    fn flushes(&self, _: Option<Rank>) -> bool {
        false
    }
}

fn explorer(roles: &[Role]) -> Explorer<'static> {
    let readers = roles.iter().filter(|role| **role == Read).count() as u64;
    let writers = roles.len() as u64 - readers;
    Explorer::new(roles.len())
        .leave_together()
        .always("mutual exclusion", |view| {
            view.fact(WRITERS) == 0 || view.fact(WRITERS) == 1 && view.fact(READERS) == 0
        })
        .possible("all readers inside together", move |view| view.fact(READERS) == readers)
        .possible("all wrote", move |view| view.fact(WRITES) == writers)
}

fn exploration<L: Excludes>(
    lock: &str,
    options: L::Options,
    roles: &'static [Role],
    flushes: bool,
    expected: Expected,
) -> Exploration {
    let program = move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let fabric = if flushes { fabric } else { mutated(fabric, NotFlushed) };
        Box::pin(once::<L>(fabric, options.clone(), probe, role)) as Run
    };
    let name = format!("locked memory, {lock}: {roles:?}{}", if flushes { "" } else { ", not flushed" });
    Exploration::new(name, expected, move || explorer(roles), program)
}

/// Returns the explorations of memory under a lock.
pub(super) fn explorations() -> Vec<Exploration> {
    const CASES: [(&[Role], u64); 4] =
        [(&[Read, Write], 100), (&[Write, Write], 100), (&[Read, Read, Write], 5_000), (&[Read, Write, Write], 3_000)];
    let pace = BackOff { attempts: 2, ..PACE };
    let right = CASES.into_iter().flat_map(|(roles, at_least)| {
        let expected = Expected::Exhausted { at_least };
        [
            exploration::<RpLock>("reader preference", (), roles, true, expected),
            exploration::<BackOffLock>("back-off", pace, roles, true, expected),
        ]
    });
    let caught = Expected::Violated { saying: "visibility", within: u64::MAX };
    right.chain([exploration::<BackOffLock>("back-off", pace, &[Read, Write], false, caught)]).collect()
}
