//! Node-aware locks under loom: the words that readers of a node share, and the race between
//! readers that leave and a writer that waits for them.

use super::HOME;
use loom_fabric::{Config, DataCell, Delivery, check, run};
use rdma_fabric::Fabric;
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{Aggregated, AggregatedOptions, IndicatorLock, Levels, RpLock},
};
use std::rc::Rc;

/// The number of 8-byte cells: two queue-based locks, a cache line for a node and one for flags,
/// and the data.
const CELLS: usize = 56;

/// Takes the lock, reads or changes the data, and releases the lock.
async fn once<L: RmaLock>(
    fabric: Fabric,
    data: Rc<DataCell>,
    writes: bool,
    options: L::Options,
) -> Result<(L, rdma_fabric::Region), LockError> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let shared = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(shared.at(HOME, 0))?;
    if writes {
        let guard = lock.write().await?;
        let version = data.enter_write(&fabric);
        fabric.put_word(&word, version).await?;
        data.leave_write();
        guard.release().await?;
    } else {
        let guard = lock.read().await?;
        let version = data.enter_read();
        assert_eq!(fabric.get_word(&word).await?, version, "visibility: a reader missed a released write");
        data.leave_read();
        guard.release().await?;
    }
    Ok((lock, shared))
}

/// Checks all executions with at most `bound` preemptions of ranks that write or read, under both
/// deliveries; each must have at least `at_least` executions.
fn check_lock<L: RmaLock>(bound: Option<usize>, writers: &'static [bool], together: bool, at_least: usize)
where
    L::Options: Send + Sync + 'static,
{
    check_with::<L>(L::Options::default(), bound, writers, together, at_least);
}

fn check_with<L: RmaLock>(
    options: L::Options,
    bound: Option<usize>,
    writers: &'static [bool],
    together: bool,
    at_least: usize,
) where
    L::Options: Send + Sync + 'static,
{
    for delivery in [Delivery::AtPost, Delivery::AtFlush] {
        let config = Config { cells_per_rank: CELLS, together, ..Config::new(writers.len(), delivery) };
        print!("writers {writers:?}, together: {together}, {delivery:?}: ");
        let options = options.clone();
        check(bound, at_least, move || {
            let options = options.clone();
            let data = Rc::new(DataCell::new());
            run(config, move |fabric| {
                let (data, writes) = (data.clone(), writers[fabric.rank().index()]);
                let options = options.clone();
                async move { once::<L>(fabric, data, writes, options).await.expect("no error is possible") }
            });
        });
    }
}

/// I7 and I8 against G2 and G3.
#[test]
fn a_writer_and_readers_that_leave() {
    check_lock::<IndicatorLock<RpLock>>(Some(3), &[false, true], false, 18);
    check_lock::<IndicatorLock<RpLock>>(Some(3), &[false, true], true, 18);
    check_lock::<IndicatorLock<RpLock>>(Some(2), &[false, false, true], true, 126);
}

#[test]
fn readers_of_a_node() {
    check_lock::<Aggregated<RpLock>>(Some(3), &[false, false], true, 79);
    check_lock::<Aggregated<RpLock>>(Some(3), &[false, true], true, 34);
    check_lock::<Aggregated<RpLock>>(Some(2), &[false, false, true], true, 190);
}

/// Ranks 0 and 1 meet in a group of two nodes, whose words are at rank 1; rank 2, in a group of its
/// own, goes to the home.
#[test]
fn readers_of_a_tree() {
    let options = AggregatedOptions { levels: Levels::Tree { radix: 2 }, ..AggregatedOptions::default() };
    check_with::<Aggregated<RpLock>>(options, Some(3), &[false, false, true], false, 1277);
    check_with::<Aggregated<RpLock>>(options, Some(3), &[true, false, false], false, 1354);
}
