//! One reader beyond the holder limit, racing with a reader that leaves and a writer that
//! registers.
//!
//! Rank 0 temporarily reads and counts for the largest number of readers; rank 1 reads or is
//! refused; rank 2 writes. The refused reader may be the last to leave before the writer, and then
//! has to admit it.

use super::HOME;
use checks::lock::{RefusalMutant, mutants::assert_idle, preset, refusal_mutant};
use loom_fabric::{Config, DataCell, Delivery, check, check_fails, run};
use rdma_fabric::{Fabric, Region};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{PackedLock, RpLock, WritersFirstLock},
};
use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Plays one rank's part; returns the values that must outlive the last rank, and whether the rank
/// was refused.
async fn part<L: RmaLock>(
    fabric: Fabric,
    seen_by_loom: Fabric,
    data: Rc<DataCell>,
) -> Result<(L, Region, bool), LockError> {
    let lock = L::symmetric(&fabric, HOME).await?;
    let shared = fabric.alloc_symmetric(8).await?;
    let refused = match use_lock(&lock, &shared, &seen_by_loom, &data).await {
        Err(LockError::TooManyHolders { .. }) => true,
        outcome => outcome.map(|()| false)?,
    };
    Ok((lock, shared, refused))
}

async fn use_lock<L: RmaLock>(
    lock: &L,
    shared: &Region,
    seen_by_loom: &Fabric,
    data: &DataCell,
) -> Result<(), LockError> {
    let fabric = lock.fabric();
    let version = fabric.remote_word::<u64>(shared.at(HOME, 0))?;
    if fabric.rank().number() == 2 {
        let guard = lock.write().await?;
        fabric.put_word(&version, data.enter_write(seen_by_loom)).await?;
        data.leave_write();
        return guard.release().await;
    }
    let guard = lock.read().await?;
    let expected = data.enter_read();
    assert_eq!(fabric.get_word(&version).await?, expected, "visibility: a reader missed a released write");
    data.leave_read();
    if fabric.rank() == HOME {
        preset(fabric, shared).await?;
    }
    guard.release().await
}

fn right<L: RmaLock>(delivery: Delivery, refused: Arc<[AtomicUsize; 2]>) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let refused = refused.clone();
        let job = run(Config::new(3, delivery), move |fabric| {
            let (data, refused) = (data.clone(), refused.clone());
            async move {
                let kept = part::<L>(fabric.clone(), fabric, data).await.expect("no other error is possible");
                refused[usize::from(kept.2)].fetch_add(1, Relaxed);
                kept
            }
        });
        assert_idle(job.residue());
    }
}

fn wrong<L: RmaLock>(mutant: RefusalMutant) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let job = run(Config::new(3, Delivery::AtPost), move |fabric| {
            let data = data.clone();
            let mutant = refusal_mutant(fabric.clone(), mutant);
            async move { part::<L>(mutant, fabric, data).await.expect("no other error is possible") }
        });
        assert_idle(job.residue());
    }
}

fn check_lock<L: RmaLock>() {
    for delivery in [Delivery::AtPost, Delivery::AtFlush] {
        let refused = Arc::<[AtomicUsize; 2]>::default();
        print!("{}, {delivery:?}: ", L::NAME);
        check(Some(3), 500, right::<L>(delivery, refused.clone()));
        assert!(refused.iter().all(|seen| seen.load(Relaxed) > 0), "{}: {refused:?}", L::NAME);
    }
    for mutant in [RefusalMutant::NotTakenBack, RefusalMutant::NobodyLetIn] {
        check_fails(Some(3), &["residue", "deadlock"], wrong::<L>(mutant));
    }
}

#[test]
fn flat() {
    check_lock::<RpLock>();
}

#[test]
fn packed() {
    check_lock::<PackedLock>();
}

#[test]
fn writers_first() {
    check_lock::<WritersFirstLock>();
}
