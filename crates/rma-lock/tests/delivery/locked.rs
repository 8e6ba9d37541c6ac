//! Memory under a lock, under all delivery orders: by copies, which is what a fabric without mapped memory has.

use crate::{
    mutant::{Mutation, mutant},
    program::{
        Role::{self, *},
        Run, in_time,
    },
};
use explore::{Explorer, Probe};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{
    Excludes, Locked,
    locks::{BackOff, BackOffLock, RpLock},
};
use std::time::Duration;

const HOME: Rank = Rank::new(0);
/// Facts: who is inside, and how often something was written.
const WRITERS: u32 = 0;
const READERS: u32 = 1;
const WRITES: u32 = 2;
const PACE: BackOff = BackOff { first: Duration::from_nanos(1), doublings: 0, attempts: 2, seed: 0 };

/// One rank's part: enter, look at two words in two ranks' memory or change both, let go.
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

/// The release does not wait until the data is visible.
#[derive(Debug)]
struct NotFlushed;

impl Mutation for NotFlushed {
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

fn job<L: Excludes>(roles: &'static [Role], options: L::Options) -> impl Fn(Fabric) -> Run {
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        Box::pin(once::<L>(fabric, options.clone(), probe, role))
    }
}

const CASES: &[(&[Role], u64)] =
    &[(&[Read, Write], 100), (&[Write, Write], 100), (&[Read, Read, Write], 5_000), (&[Read, Write, Write], 3_000)];

#[test]
fn holders_exclude_and_see_each_other() {
    for (roles, at_least) in CASES {
        for (name, report) in [
            ("reader preference", explorer(roles).run(job::<RpLock>(roles, ()))),
            ("back-off", explorer(roles).run(job::<BackOffLock>(roles, PACE))),
        ] {
            println!("{name}, {roles:?}: {report}");
            report.expect_exhausted();
            assert!(report.states >= *at_least, "{name}, {roles:?}: {} states explored", report.states);
        }
    }
}

#[test]
fn a_release_that_does_not_flush_is_caught() {
    let roles: &'static [Role] = &[Read, Write];
    let report = explorer(roles).run(move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        Box::pin(once::<BackOffLock>(mutant(fabric, NotFlushed), PACE, probe, role)) as Run
    });
    let found = report.violation().expect("a write that comes late");
    assert!(found.what.contains("visibility"), "{}", found.what);
}
