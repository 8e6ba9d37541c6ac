//! The reader-preference lock, right and wrong, under all delivery orders.

use crate::{
    explore::{Case, Task},
    fabric::NetFabric,
    mutant::{Mutant, Rp, Step, assert_idle},
    net::Net,
};
use rdma_fabric::{Fabric, Rank, Region, Time};
use rma_lock::{LockError, RpLock};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Write,
    TryRead,
    TryWrite,
    ReadBefore,
    WriteBefore,
    /// Drops the acquisition at any moment.
    ReadDropped,
    WriteDropped,
    /// Drops the release at any moment.
    ReadReleaseDropped,
    WriteReleaseDropped,
}
use Role::*;

const HOME: Rank = Rank::new(0);
const DEADLINE: Time = Time::from_picos(1);

/// Who is inside, and how many writes there were.
#[derive(Debug, Default)]
struct Section {
    writers: Cell<u32>,
    readers: Cell<u32>,
    writes: Cell<u64>,
    /// The most readers that were ever inside together.
    most_readers: Cell<u32>,
}

/// A deadline that came is no error here.
pub(crate) fn in_time<G>(outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TimedOut) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// One rank's part, `n` times: take the lock, look at the data or change it, let go.
async fn rounds<F: Fabric>(
    fabric: F,
    seen: NetFabric,
    section: Rc<Section>,
    role: Role,
    n: usize,
) -> Result<(), LockError> {
    let lock = RpLock::symmetric(&fabric, HOME).await?;
    let shared = fabric.alloc_symmetric(8).await?;
    // With the last rank: the data need not be where the lock is.
    let word = fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 0))?;
    for _ in 0..n {
        match role {
            Write | TryWrite | WriteBefore | WriteDropped | WriteReleaseDropped => {
                let guard = match role {
                    Write | WriteReleaseDropped => Some(lock.write().await?),
                    TryWrite => lock.try_write().await?,
                    WriteDropped => fabric.before(DEADLINE, lock.write()).await.transpose()?,
                    _ => in_time(lock.write_before(DEADLINE).await)?,
                };
                let Some(guard) = guard else { continue };
                let others = section.writers.replace(1) + section.readers.get();
                assert_eq!(others, 0, "mutual exclusion: a writer is not alone");
                let before = fabric.get_word(&word).await?;
                assert_eq!(before, section.writes.get(), "visibility: a writer missed a released write");
                section.writes.set(before + 1);
                fabric.put_word(&word, before + 1).await?;
                section.writers.set(0);
                match role {
                    WriteReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                    _ => guard.release().await?,
                }
            }
            Read | TryRead | ReadBefore | ReadDropped | ReadReleaseDropped => {
                let guard = match role {
                    Read | ReadReleaseDropped => Some(lock.read().await?),
                    TryRead => lock.try_read().await?,
                    ReadDropped => fabric.before(DEADLINE, lock.read()).await.transpose()?,
                    _ => in_time(lock.read_before(DEADLINE).await)?,
                };
                let Some(guard) = guard else { continue };
                section.readers.set(section.readers.get() + 1);
                section.most_readers.set(section.readers.get().max(section.most_readers.get()));
                assert_eq!(section.writers.get(), 0, "mutual exclusion: a reader met a writer");
                seen.observe(section.writes.get());
                assert_eq!(fabric.get_word(&word).await?, section.writes.get(), "visibility: a reader missed a write");
                section.readers.set(section.readers.get() - 1);
                match role {
                    ReadReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                    _ => guard.release().await?,
                }
            }
        }
    }
    Ok(())
}

/// Give `explore` the case of these roles with one step done wrong, or none.
fn with_case<T>(roles: &[Role], n: usize, step: Step, explore: impl FnOnce(&Case<'_>) -> T) -> T {
    with_seen(roles, n, step, explore).0
}

/// The same; and the most readers that were inside together in any run.
fn with_seen<T>(roles: &[Role], n: usize, step: Step, explore: impl FnOnce(&Case<'_>) -> T) -> (T, u32) {
    let most_readers = Cell::new(0);
    let last = RefCell::new(Rc::<Section>::default());
    let start = |fabrics: &[NetFabric]| {
        let section = Rc::new(Section::default());
        last.replace(section.clone());
        let tasks = fabrics.iter().zip(roles).map(|(fabric, role)| -> Task {
            let (fabric, section, role) = (fabric.clone(), section.clone(), *role);
            if step == Step::Right {
                Box::pin(async move { rounds(fabric.clone(), fabric, section, role, n).await.expect("an error") })
            } else {
                let mutant = Mutant::new(fabric.clone(), Rp::new(step));
                Box::pin(async move { rounds(mutant, fabric, section, role, n).await.expect("an error") })
            }
        });
        tasks.collect()
    };
    let end = |net: &Net| {
        assert_idle(net.residue());
        most_readers.set(most_readers.get().max(last.borrow().most_readers.get()));
    };
    let out = explore(&Case { ranks: roles.len(), cells_per_rank: 32, start: &start, end: &end });
    (out, most_readers.get())
}

/// Explore `roles` to the end; at least so many states.
fn exhaust(roles: &[Role], n: usize, at_least: usize) -> u32 {
    let start = Instant::now();
    let (states, most_readers) = with_seen(roles, n, Step::Right, |case| case.exhaust(3_000_000));
    let states = states.unwrap_or_else(|error| panic!("{roles:?}: {error}"));
    println!("{roles:?} x {n}: {states} states, {:.2} s", start.elapsed().as_secs_f64());
    assert!(states >= at_least, "{states} states explored where {at_least} were recorded");
    most_readers
}

#[test]
fn two_ranks() {
    for (roles, once, twice) in [
        ([Read, Write], 263, 5_229),
        ([Write, Read], 263, 5_229),
        ([Write, Write], 242, 5_292),
        ([Read, Read], 69, 759),
    ] {
        exhaust(&roles, 1, once);
        let most_readers = exhaust(&roles, 2, twice);
        assert_eq!(most_readers, roles.iter().filter(|role| **role == Read).count() as u32, "readers never shared");
    }
}

#[test]
fn two_ranks_trying() {
    exhaust(&[TryWrite, Read], 2, 9_339);
    exhaust(&[TryWrite, Write], 2, 1_773);
    exhaust(&[TryRead, Write], 2, 2_793);
    exhaust(&[TryWrite, TryWrite], 2, 862);
}

#[test]
fn two_ranks_giving_up() {
    exhaust(&[WriteBefore, Read], 2, 19_214);
    exhaust(&[WriteBefore, Write], 2, 23_453);
    exhaust(&[ReadBefore, Write], 2, 12_826);
}

#[test]
fn two_ranks_dropping() {
    for (roles, at_least) in [
        ([ReadDropped, Write], 1_187),
        ([WriteDropped, Read], 1_945),
        ([WriteDropped, Write], 1_597),
        ([WriteDropped, WriteDropped], 9_905),
        ([ReadReleaseDropped, Write], 616),
        ([WriteReleaseDropped, Read], 1_003),
        ([WriteReleaseDropped, WriteDropped], 5_853),
    ] {
        exhaust(&roles, 1, at_least);
    }
}

#[test]
fn three_ranks_dropping_a_writer() {
    exhaust(&[WriteDropped, Read, Write], 1, 96_790);
}

#[test]
fn three_ranks_dropping_a_reader() {
    exhaust(&[ReadDropped, Read, Write], 1, 159_457);
}

#[test]
fn three_ranks() {
    exhaust(&[Read, Write, Write], 1, 14_343);
    exhaust(&[Write, Write, Write], 1, 11_069);
    assert_eq!(exhaust(&[Read, Read, Write], 1, 28_770), 2, "no order had both readers inside");
    exhaust(&[TryWrite, Read, Write], 1, 13_813);
}

#[test]
fn three_ranks_giving_up() {
    exhaust(&[WriteBefore, Read, Write], 1, 32_929);
    exhaust(&[ReadBefore, WriteBefore, Write], 1, 50_690);
}

/// More ranks and rounds than can be exhausted. Replay a failure by its seed.
#[test]
fn random_orders_of_many_ranks() {
    const RUNS: u64 = 5_000;
    let cases: [(&[Role], usize); 10] = [
        (&[Read, Read, Write, Write], 2),
        (&[Read, Write, Write, Write], 2),
        (&[Read, Read, Read, Write], 2),
        (&[Read, Read, Read, Write, Write], 2),
        (&[ReadBefore, ReadBefore, Write, Write], 3),
        (&[Read, Read, WriteBefore, WriteBefore], 3),
        (&[ReadBefore, ReadBefore, ReadBefore, WriteBefore, WriteBefore, WriteBefore], 3),
        (&[ReadBefore, TryRead, WriteBefore, TryWrite, Read, Write], 3),
        (&[ReadDropped, ReadReleaseDropped, WriteReleaseDropped, WriteDropped, Write], 3),
        (&[ReadDropped, WriteDropped, ReadBefore, WriteBefore, Read, Write], 3),
    ];
    for (roles, n) in cases {
        let start = Instant::now();
        with_case(roles, n, Step::Right, |case| case.sample(1, RUNS))
            .unwrap_or_else(|error| panic!("{roles:?} x {n}: {error}"));
        println!("{roles:?} x {n}: {RUNS} runs from seed 1, {:.2} s", start.elapsed().as_secs_f64());
    }
}

/// Each step done wrong is found by exhausting a small case, or in random runs of a larger one.
#[test]
fn mutations_are_caught() {
    let cases: [(Step, &[Role], usize); 15] = [
        (Step::NoSecondLook, &[Read, Write], 1),
        (Step::LateInitialisation, &[Write, Write], 2),
        (Step::HeadNotFlushed, &[Read, Write], 1),
        (Step::ComparisonIgnored, &[Read, Write], 1),
        (Step::DataNotFlushed, &[Read, Write], 1),
        (Step::StoreForSubtract, &[Read, Write], 1),
        (Step::NoSweep, &[Read, Write], 1),
        (Step::TailIgnored, &[Write, Write], 1),
        (Step::MarkIgnored, &[Write, Write], 1),
        (Step::NoMark, &[Write, Write], 1),
        (Step::AbandonedTakenForWoken, &[WriteBefore, Write], 1),
        (Step::AbandonedTakenForWoken, &[ReadDropped, Write], 1),
        (Step::DroppedAndForgotten, &[ReadDropped, Write], 1),
        (Step::DroppedAndForgotten, &[WriteDropped, Write], 1),
        // What one reader and two writers show in two rounds and not in one.
        (Step::RememberedNext, &[Read, Write, Write], 2),
    ];
    for (step, roles, n) in cases {
        let start = Instant::now();
        let Err(found) = with_case(roles, n, step, |case| case.exhaust(100_000)) else { panic!("{step:?} passed") };
        assert!(!found.starts_with("more than"), "{step:?}: {found}");
        println!("{step:?}: {found}, {:.2} s", start.elapsed().as_secs_f64());
    }
}
