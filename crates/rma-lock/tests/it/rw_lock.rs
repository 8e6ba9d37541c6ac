//! The lock that is chosen at run time, with every kind: exclusion between threads, the result of
//! each call while another rank holds the lock and after it has released the lock, and the
//! description of the lock.

use crate::threads::{check_words, move_words};
use checks::jobs::{threads, virtual_time};
use rdma_fabric::{Fabric, Group, Program, ProgramResult, Rank};
use rma_lock::{
    Fairness::{self, Alternating, Barging, Fifo, ReadersFirst, WritersFirst},
    Guard, Lock, LockError, Policy, RwLock,
    locks::LockKind,
    with_lock,
};
use std::{any::Any, time::Duration};
use tofu2_sim::virt::Platform;

/// Not the first rank, so that a lock that ignores its home is detected.
const HOME: Rank = Rank::new(1);
/// The time limit of a rank that cannot enter.
const SHORT: Duration = Duration::from_micros(200);
/// The time limit of a rank that must enter, so that a failure is an error and not a deadlock.
const LONG: Duration = Duration::from_secs(10);
const BYTES: usize = 1 << 16;

/// Each kind with its declared fairness and the name that its lock displays.
const KINDS: [(LockKind, Fairness, &str); 12] = [
    (LockKind::ReaderPreference, ReadersFirst, "reader preference"),
    (LockKind::Packed, ReadersFirst, "packed"),
    (LockKind::Barging, ReadersFirst, "barging"),
    (LockKind::WritersFirst, WritersFirst, "writers-first"),
    (LockKind::Fair, Fifo, "fair"),
    (LockKind::BackOff, Barging, "back-off"),
    (LockKind::TwoLevels, Barging, "two-levels"),
    (LockKind::ByNode, ReadersFirst, "reader preference above nodes"),
    (LockKind::ByNodeBackOff, Barging, "by-node-back-off"),
    (LockKind::Indicator, Alternating, "reader indicator"),
    (LockKind::Recoverable, ReadersFirst, "recoverable"),
    (LockKind::Tree { radix: 2 }, ReadersFirst, "reader preference above a tree of radix 2"),
];

fn kinds() -> impl Iterator<Item = LockKind> {
    LockKind::ALL.into_iter().chain([LockKind::Tree { radix: 2 }])
}

async fn make(fabric: &Fabric, kind: LockKind) -> Result<RwLock, LockError> {
    <RwLock as Lock>::symmetric_with(fabric, HOME, kind.into()).await
}

#[test]
fn readers_and_writers_exclude_each_other() {
    for kind in kinds() {
        check_words(kind, &async |fabric| move_words::<RwLock>(fabric, kind.into()).await);
    }
}

/// How a holder releases the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Released,
    Dropped,
}

async fn let_go(guard: impl Guard, end: End) -> Result<(), LockError> {
    match end {
        End::Released => guard.release().await,
        End::Dropped => {
            drop(guard);
            Ok(())
        }
    }
}

/// Tries to read and to write, immediately and until a near deadline, and finds the lock taken.
async fn is_kept_out(lock: &RwLock) -> ProgramResult<()> {
    assert!(lock.try_read().await?.is_none(), "a reader beside a writer");
    cannot_write(lock).await?;
    let deadline = lock.fabric().now() + SHORT;
    assert_eq!(lock.read_before(deadline).await.err(), Some(LockError::TimedOut));
    assert!(lock.fabric().now() >= deadline, "gave up reading before the deadline");
    Ok(())
}

async fn cannot_write(lock: &RwLock) -> ProgramResult<()> {
    assert!(lock.try_write().await?.is_none(), "a writer beside somebody");
    let deadline = lock.fabric().now() + SHORT;
    assert_eq!(lock.write_before(deadline).await.err(), Some(LockError::TimedOut));
    assert!(lock.fabric().now() >= deadline, "gave up writing before the deadline");
    Ok(())
}

/// Enters as a reader by each call while another reader is inside, and leaves in both ways.
async fn reads(lock: &RwLock) -> ProgramResult<()> {
    for end in [End::Released, End::Dropped] {
        let_go(lock.try_read().await?.ok_or("a reader kept a reader out")?, end).await?;
        let_go(lock.read_before(lock.fabric().now() + LONG).await?, end).await?;
        let_go(lock.read().await?, end).await?;
    }
    Ok(())
}

/// Enters after a holder has left: immediately if the holder awaited its release.
async fn gets_in(lock: &RwLock, end: End) -> ProgramResult<()> {
    let far = lock.fabric().now() + LONG;
    let guard = match end {
        End::Released => lock.try_write().await?.ok_or("released, but not free")?,
        End::Dropped => lock.write_before(far).await?,
    };
    guard.release().await?;
    lock.write().await?.release().await?;
    lock.try_read().await?.ok_or("nobody writes any more")?.release().await?;
    Ok(())
}

/// Two ranks take turns in holding the lock exclusively and then shared, while the other one tries
/// all calls; then the holder leaves, and the other one enters.
async fn in_turns(fabric: Fabric, kind: LockKind) -> ProgramResult<()> {
    let lock = make(&fabric, kind).await?;
    let mut world = Group::world(&fabric).await?;
    let turns = [End::Released, End::Dropped].map(|end| [0, 1].map(|holder| (Rank::new(holder), end)));
    for (holder, end) in turns.into_iter().flatten() {
        if fabric.rank() == holder {
            let guard = lock.write().await?;
            world.barrier().await?;
            world.barrier().await?;
            let_go(guard, end).await?;
            world.barrier().await?;
            world.barrier().await?;
            let guard = lock.read().await?;
            world.barrier().await?;
            world.barrier().await?;
            let_go(guard, end).await?;
            world.barrier().await?;
        } else {
            world.barrier().await?;
            is_kept_out(&lock).await?;
            world.barrier().await?;
            world.barrier().await?;
            gets_in(&lock, end).await?;
            world.barrier().await?;
            world.barrier().await?;
            reads(&lock).await?;
            cannot_write(&lock).await?;
            world.barrier().await?;
            world.barrier().await?;
            gets_in(&lock, end).await?;
        }
        world.barrier().await?;
    }
    Ok(())
}

fn in_virtual_time<P: Program>(ranks: usize, ranks_per_node: u32, program: &P) -> Result<Vec<P::Out>, String> {
    let job = virtual_time(&Platform::fx100(), ranks).ranks_per_node(ranks_per_node);
    job.run(program).map(|run| run.outs).map_err(|error| error.to_string())
}

#[test]
fn a_holder_keeps_others_out_until_it_lets_go() {
    for (kind, ranks_per_node) in kinds().flat_map(|kind| [(kind, 1), (kind, 2)]) {
        in_virtual_time(2, ranks_per_node, &async |fabric| in_turns(fabric, kind).await)
            .unwrap_or_else(|error| panic!("{kind}, {ranks_per_node} on a node: {error}"));
    }
}

/// Runs on a fabric whose operations complete when they are posted.
#[test]
fn a_thread_that_holds_keeps_others_out_until_it_lets_go() {
    for (kind, ranks_per_node) in kinds().flat_map(|kind| [(kind, 1), (kind, 2)]) {
        let job = threads(2).ranks_per_node(ranks_per_node).segment_bytes(BYTES);
        job.run(&async |fabric| in_turns(fabric, kind).await)
            .unwrap_or_else(|error| panic!("{kind}, {ranks_per_node} on a node: {error}"));
    }
}

/// Makes a lock of a kind's own type, adds it to `kept`, and returns its description.
async fn described<L: Lock>(
    fabric: &Fabric,
    options: L::Options,
    kept: &mut Vec<Box<dyn Any>>,
) -> ProgramResult<String> {
    let lock = L::symmetric_with(fabric, HOME, options).await?;
    let described = format!("{lock:?}");
    kept.push(Box::new(lock));
    Ok(described)
}

/// Makes a lock of each kind, and checks its description.
async fn introduces_itself(fabric: Fabric) -> ProgramResult<()> {
    // No rank frees memory before all ranks have made their locks.
    let mut kept = Vec::new();
    for (kind, fairness, shown) in KINDS {
        let lock = make(&fabric, kind).await?;
        assert_eq!((lock.home(), <RwLock as Lock>::home(&lock)), (HOME, HOME), "{kind}");
        assert_eq!(lock.fabric().rank(), fabric.rank(), "{kind}");
        assert_eq!(<RwLock as Lock>::fabric(&lock).rank(), fabric.rank(), "{kind}");
        assert_eq!((lock.choice(), lock.fairness()), (kind.into(), fairness));
        assert_eq!(lock.to_string(), format!("{shown}, as asked for"));
        let recoverable = lock.recoverable().map(Lock::home);
        assert_eq!(recoverable, (kind == LockKind::Recoverable).then_some(HOME), "{kind}");
        let inside = with_lock!(kind, L, options => described::<L>(&fabric, options, &mut kept).await?);
        assert_eq!(format!("{lock:?}"), inside, "{kind}");
        kept.push(Box::new(lock));
    }
    Group::world(&fabric).await?.barrier().await?;
    Ok(())
}

#[test]
fn it_says_what_it_is() {
    assert!(kinds().eq(KINDS.map(|(kind, ..)| kind)), "a kind is missing here");
    threads(3).segment_bytes(1 << 18).run(&introduces_itself).unwrap();
    // Enough nodes for a tree of radix 2 to have levels above them.
    in_virtual_time(16, 2, &introduces_itself).unwrap();
}

/// Makes a lock by each policy, and one without a policy, and returns their kinds.
async fn by_policy(fabric: Fabric) -> ProgramResult<Vec<LockKind>> {
    let policies =
        [Policy::ReaderPreference, Policy::Fair, Policy::WritersFirst, Policy::NodeAware, Policy::Recoverable];
    let mut locks = Vec::new();
    for policy in policies {
        locks.push(RwLock::with_policy(&fabric, HOME, policy).await?);
    }
    locks.push(RwLock::symmetric(&fabric, HOME).await?);
    // No rank frees memory before all ranks have made their locks.
    Group::world(&fabric).await?.barrier().await?;
    Ok(locks.iter().map(|lock| lock.choice().kind).collect())
}

/// The kinds that [`by_policy`] returns if [`Policy::NodeAware`] chooses `kind`.
fn with_node_aware(kind: LockKind) -> Vec<LockKind> {
    use LockKind::*;
    vec![Barging, Fair, WritersFirst, kind, Recoverable, Barging]
}

#[test]
fn a_policy_comes_to_a_kind_by_ranks_and_nodes() {
    let one_node = threads(3).segment_bytes(1 << 18).run(&by_policy).unwrap();
    assert_eq!(one_node, vec![with_node_aware(LockKind::ReaderPreference); 3]);
    let jobs = [
        (32, 32, LockKind::ReaderPreference, "one node"),
        (16, 4, LockKind::ReaderPreference, "few ranks"),
        (32, 1, LockKind::ReaderPreference, "ranks alone on their nodes"),
        (32, 8, LockKind::ByNode, "ranks that share nodes"),
        (1024, 1, LockKind::Tree { radix: 64 }, "very many nodes"),
    ];
    for (ranks, ranks_per_node, kind, job) in jobs {
        let kinds = in_virtual_time(ranks, ranks_per_node, &by_policy).unwrap();
        assert_eq!(kinds, vec![with_node_aware(kind); ranks], "{job}");
    }
}
