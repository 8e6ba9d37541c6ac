//! A reader that is one too many, beside one that leaves and a writer that registers.
//!
//! Rank 0 reads, and counts for as many as a word counts, for a while; rank 1 reads or is refused;
//! rank 2 writes. The one that is refused may be the last that leaves before the writer, and has to
//! let it in.

use crate::mutant::{Mutation, assert_idle, mutant};
use loom_fabric::{Config, DataCell, Delivery, check, check_fails, run};
use rdma_fabric::{Amo, Fabric, Rank, Region, RegionKey, RemoteAddr};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{PackedLock, RpLock, WritersFirstLock},
};
use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

const HOME: Rank = Rank::new(0);
const COUNT: u64 = 0;
const READER: u64 = 4;
const MOST: u64 = 1 << 26;

/// One rank's part. What must outlive the last rank; whether it was refused.
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
        let region = RegionKey { index: 0, ..shared.key() };
        let count = fabric.remote_word::<u64>(RemoteAddr { rank: HOME, region, offset: COUNT })?;
        fabric.fetch_add(&count, (MOST - 1) * READER).await?;
        fabric.fetch_add(&count, ((MOST - 1) * READER).wrapping_neg()).await?;
    }
    guard.release().await
}

/// Who was refused forgets to take itself back, or to let the writer in.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    NotTakenBack,
    NobodyLetIn,
}

#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    refused: Cell<bool>,
}

fn at_count(addr: RemoteAddr) -> bool {
    addr.region.index == 0 && addr.offset == COUNT
}

const UNCOUNT: Amo<u64> = Amo::Add(READER.wrapping_neg());

impl Mutation for Mistake {
    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        let forgets = matches!(self.wrong, Wrong::NotTakenBack) && at_count(addr) && amo == UNCOUNT;
        if forgets && self.refused.take() { Amo::Or(0) } else { amo }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        if at_count(addr) && amo == Amo::Add(READER) {
            // Flags apart.
            self.refused.set(old % (1 << 31) >= MOST * READER);
        }
        let overlooks = matches!(self.wrong, Wrong::NobodyLetIn) && at_count(addr) && amo == UNCOUNT;
        if overlooks && self.refused.take() { old + READER } else { old }
    }
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

fn wrong<L: RmaLock>(wrong: Wrong) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let job = run(Config::new(3, Delivery::AtPost), move |fabric| {
            let data = data.clone();
            let mutant = mutant(fabric.clone(), Mistake { wrong, refused: Cell::new(false) });
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
    check_fails(Some(3), &["residue", "deadlock"], wrong::<L>(Wrong::NotTakenBack));
    check_fails(Some(3), &["residue", "deadlock"], wrong::<L>(Wrong::NobodyLetIn));
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
