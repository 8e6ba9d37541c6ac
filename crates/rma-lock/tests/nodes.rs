//! Locks that know nodes, in virtual time: how many operations their home meets, exactly, and how long a wave of readers takes.

use observe::{Observed, Recorder};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Aggregated, AggregatedOptions, BackOffLock, Guard, Levels, RmaLock, RpLock};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

/// Where the lock is. Not the first rank of its node, whose words are not the lock's.
const HOME: Rank = Rank::new(1);

/// A lock to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Flat,
    Nodes,
    NodesBackOff,
    Tree(u32),
}

/// Additions that this rank has posted to the home: each of a reader's steps at a lock is one. (Wakes are comparisons.)
fn additions(recorder: &Recorder) -> u64 {
    recorder.record().counts.peers.get(&HOME.number()).map_or(0, |counts| counts.atomics.add)
}

/// Take and release the lock `waves` times, all ranks; with barriers in between or not. Yields this rank's additions at the home.
async fn waves<F: Fabric, L: RmaLock<Observed<F>>>(
    fabric: F,
    options: L::Options,
    waves: u32,
    apart: bool,
) -> ProgramResult<u64> {
    let recorder = Recorder::new(fabric.rank(), None);
    let observed = Observed::new(fabric.clone(), recorder.clone());
    let lock = L::symmetric_with(&observed, HOME, options).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    let before = additions(&recorder);
    for _ in 0..waves {
        let guard = lock.read().await?;
        if apart {
            world.barrier().await?;
        }
        guard.release().await?;
        if apart {
            world.barrier().await?;
        }
    }
    let counted = additions(&recorder) - before;
    // Nobody's memory goes before all are through.
    world.barrier().await?;
    Ok(counted)
}

rdma_fabric::program! {
    async fn counted<F>(fabric: F, which: Which, waves_of: u32, apart: bool) -> u64 {
        let nodes = AggregatedOptions::default();
        match which {
            Which::Flat => waves::<F, RpLock<_>>(fabric, (), waves_of, apart).await,
            Which::Nodes => waves::<F, Aggregated<_, RpLock<_>>>(fabric, nodes, waves_of, apart).await,
            Which::NodesBackOff => {
                waves::<F, Aggregated<_, BackOffLock<_>>>(fabric, AggregatedOptions::default(), waves_of, apart).await
            }
            Which::Tree(radix) => {
                let tree = AggregatedOptions { levels: Levels::Tree { radix }, lock: () };
                waves::<F, Aggregated<_, RpLock<_>>>(fabric, tree, waves_of, apart).await
            }
        }
    }
}

/// What the home meets in `waves` waves of `nodes` x `ranks_per_node` ranks.
fn at_home(which: Which, nodes: usize, ranks_per_node: u32, waves_of: u32, apart: bool) -> u64 {
    let job = Job::new(&Platform::fx100(), nodes * ranks_per_node as usize).ranks_per_node(ranks_per_node);
    job.run(&counted { which, waves_of, apart }).unwrap().outs.iter().sum()
}

#[test]
fn a_wave_costs_the_home_two_operations_for_each_node() {
    const WAVES: u64 = 3;
    for which in [Which::Nodes, Which::NodesBackOff] {
        assert_eq!(at_home(which, 16, 8, WAVES as u32, true), WAVES * 2 * 16, "{which:?}");
        assert_eq!(at_home(which, 32, 32, WAVES as u32, true), WAVES * 2 * 32, "{which:?}, 1024 ranks");
    }
    assert_eq!(at_home(Which::Flat, 16, 8, WAVES as u32, true), WAVES * 2 * 128);
}

#[test]
fn a_wave_through_a_tree_costs_the_home_two_operations_for_each_top_unit() {
    const WAVES: u64 = 2;
    for (nodes, radix, units) in [(16, 4, 4), (64, 8, 8), (64, 4, 4), (27, 3, 3), (10, 4, 3), (5, 8, 5), (17, 2, 2)] {
        assert_eq!(at_home(Which::Tree(radix), nodes, 4, WAVES as u32, true), WAVES * 2 * units, "{nodes} by {radix}");
    }
}

/// Ranks that come and go as they like: between two for each node and two for each rank.
#[test]
fn without_barriers_it_costs_no_more_than_a_flat_lock() {
    const WAVES: u64 = 20;
    let flat = at_home(Which::Flat, 32, 8, WAVES as u32, false);
    assert_eq!(flat, WAVES * 2 * 256);
    for which in [Which::Nodes, Which::Tree(8)] {
        let home = at_home(which, 32, 8, WAVES as u32, false);
        println!("{which:?}: {home} operations at the home, {flat} of a flat lock");
        assert!(home < flat, "{which:?}: {home}");
    }
}

rdma_fabric::program! {
    /// A node of readers, a writer on another node that leaves only after a while. Yields when this rank was inside, in picoseconds since the
    /// writer let go; rank 0 of the readers has no patience.
    async fn a_leader_that_gives_up<F>(fabric: F) -> Option<i64> {
        let lock = Aggregated::<F, RpLock<F>>::symmetric_any(&fabric).await?;
        let mut world = Group::world(&fabric).await?;
        let last = Rank::new(fabric.ranks() as u32 - 1);
        let held = if fabric.rank() == last { Some(lock.write().await?) } else { None };
        world.barrier().await?;
        let end = fabric.now() + Duration::from_micros(200);
        if let Some(guard) = held {
            fabric.sleep_until(end).await;
            guard.release().await?;
            world.barrier().await?;
            return Ok(None);
        }
        fabric.sleep(Duration::from_micros(u64::from(fabric.rank().number()) * 10)).await;
        if fabric.rank() == Rank::new(0) {
            let deadline = fabric.now() + Duration::from_micros(100);
            assert_eq!(lock.read_before(deadline).await.err(), Some(rma_lock::LockError::TimedOut));
            world.barrier().await?;
            return Ok(None);
        }
        assert!(lock.try_read().await?.is_none());
        let guard = lock.read().await?;
        let late = fabric.now().as_picos() as i64 - end.as_picos() as i64;
        guard.release().await?;
        world.barrier().await?;
        Ok(Some(late))
    }
}

trait SymmetricAny<F: Fabric>: RmaLock<F> {
    fn symmetric_any(fabric: &F) -> impl Future<Output = rma_lock::Result<Self>> {
        Self::symmetric(fabric, HOME)
    }
}
impl<F: Fabric, L: RmaLock<F>> SymmetricAny<F> for L {}

#[test]
fn another_rank_leads_when_the_first_gives_up() {
    let outs = Job::new(&Platform::fx100(), 9).ranks_per_node(8).run(&a_leader_that_gives_up {}).unwrap().outs;
    let late: Vec<_> = outs.iter().flatten().collect();
    assert_eq!(late.len(), 7, "{outs:?}");
    assert!(late.iter().all(|late| (0..100_000_000).contains(*late)), "{late:?}");
}
