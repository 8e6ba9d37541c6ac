//! The programs of ranks that use a lock, and their invariants in every delivery order.

use super::mutants::{QueuedMutant, assert_idle, lock_words, queued_mutant};
use crate::exploration::Run;
use explore::{Explorer, Probe};
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{Aggregated, AggregatedOptions, BackOff, BackOffLock, LockKind, WindowLock},
    with_lock,
};
use std::time::Duration;

/// The action of a rank, any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes the lock shared.
    Read,
    /// Takes the lock exclusively.
    Write,
    /// Tries to read.
    TryRead,
    /// Tries to write.
    TryWrite,
    /// Reads with a deadline, which expires at any moment.
    ReadBefore,
    /// Writes with a deadline, which expires at any moment.
    WriteBefore,
    /// Drops the acquisition of a reader at any moment.
    ReadDropped,
    /// Drops the acquisition of a writer at any moment.
    WriteDropped,
    /// Drops the release of a reader at any moment.
    ReadReleaseDropped,
    /// Drops the release of a writer at any moment.
    WriteReleaseDropped,
    /// Reads, and puts to a word that only it writes.
    ReadAndPut,
    /// Writes, and checks the puts of readers.
    WriteAndLook,
    /// Takes these roles once, one after another, instead of a number of rounds.
    Turns(&'static [Role]),
}
use Role::*;

pub(super) const HOME: Rank = Rank::new(0);
pub(super) const DEADLINE: Time = Time::from_picos(1);

/// The fact that counts writers inside.
pub(super) const WRITERS: u32 = 0;
/// The fact that counts readers inside.
pub(super) const READERS: u32 = 1;
/// The fact that counts writes.
pub(super) const WRITES: u32 = 2;
/// The first of the facts that count the puts of rank 0, 1, ... as a reader.
const PUTS: u32 = 100;
/// The fact that counts the acquisitions for which a rank had no node left.
const REFUSED: u32 = 3;

/// Queue nodes per rank and lock.
const NODES: usize = 4;

impl Role {
    /// Returns whether it ever writes.
    pub fn writes(self) -> bool {
        match self {
            Turns(turns) => turns.iter().any(|turn| turn.writes()),
            role => matches!(role, Write | TryWrite | WriteBefore | WriteDropped | WriteReleaseDropped | WriteAndLook),
        }
    }

    fn gives_up(self) -> bool {
        matches!(self, ReadBefore | WriteBefore | ReadDropped | WriteDropped)
    }

    /// Returns whether all of its nodes may have been left in queues when it needs another one.
    fn runs_out(self) -> bool {
        match self {
            Turns([before @ .., _]) => before.iter().filter(|turn| turn.gives_up()).count() >= NODES,
            _ => false,
        }
    }
}

/// Turns an expired deadline, or a lock that was taken at every attempt, into `None`.
pub fn in_time<G>(outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TimedOut | LockError::Contended { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Turns into `None` the same errors as [`in_time`], and also a lack of nodes if enough
/// acquisitions of this rank gave up (`gave_up`) to explain it.
fn had<G>(probe: &Probe, gave_up: u32, outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TooManyWaiting { .. }) if gave_up as usize >= NODES => {
            probe.add(REFUSED, 1);
            Ok(None)
        }
        outcome => in_time(outcome),
    }
}

/// Acquires the lock, reads or changes the data, and releases it, `n` times: one rank's part.
///
/// A step ends when the lock is held and when it has been released. The rank's state then consists
/// of the `Debug` output of the guard and the lock, the values stored in its own words, and the
/// rounds in which it gave up.
async fn rounds<L: RmaLock>(
    fabric: Fabric,
    options: L::Options,
    probe: Probe,
    role: Role,
    n: usize,
) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let shared = fabric.alloc_symmetric(8 * (1 + fabric.ranks())).await?;
    // The data is at the last rank: it need not be where the lock is.
    let word = fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 0))?;
    let put_by = |rank: u64| fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 8 * (1 + rank)));
    // The rounds, as bits, in which the lock was not acquired: another rank may still have to act
    // on a node that was left behind.
    let mut without = 0u64;
    let turns = if let Turns(turns) = role { turns.to_vec() } else { vec![role; n] };
    for (round, role) in turns.into_iter().enumerate() {
        let gave_up = without.count_ones();
        without |= 1 << round;
        if role.writes() {
            let guard = match role {
                Write | WriteReleaseDropped | WriteAndLook => had(&probe, gave_up, lock.write().await)?,
                TryWrite => lock.try_write().await?,
                WriteDropped => {
                    let before = fabric.before(DEADLINE, lock.write()).await;
                    had(&probe, gave_up, before.unwrap_or(Err(LockError::TimedOut)))?
                }
                _ => had(&probe, gave_up, lock.write_before(DEADLINE).await)?,
            };
            if let Some(guard) = guard {
                without &= !(1 << round);
                probe.step((round, without, format!("{guard:?}"), probe.stored()));
                probe.add(WRITERS, 1);
                let before = fabric.get_word(&word).await?;
                assert_eq!(before, probe.add(WRITES, 1), "visibility: a writer missed a released write");
                fabric.put_word(&word, before + 1).await?;
                if role == WriteAndLook {
                    for rank in 0..fabric.ranks() as u64 {
                        let (put, puts) = (fabric.get_word(&put_by(rank)?).await?, probe.get(PUTS + rank as u32));
                        assert_eq!(put, puts, "visibility: a writer missed what a reader put");
                    }
                }
                probe.subtract(WRITERS, 1);
                match role {
                    WriteReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                    _ => guard.release().await?,
                }
            }
        } else {
            let guard = match role {
                Read | ReadReleaseDropped | ReadAndPut => had(&probe, gave_up, lock.read().await)?,
                TryRead => lock.try_read().await?,
                ReadDropped => {
                    let before = fabric.before(DEADLINE, lock.read()).await;
                    had(&probe, gave_up, before.unwrap_or(Err(LockError::TimedOut)))?
                }
                _ => had(&probe, gave_up, lock.read_before(DEADLINE).await)?,
            };
            if let Some(guard) = guard {
                without &= !(1 << round);
                probe.step((round, without, format!("{guard:?}"), probe.stored()));
                probe.add(READERS, 1);
                let seen = fabric.get_word(&word).await?;
                assert_eq!(seen, probe.get(WRITES), "visibility: a reader missed a write");
                if role == ReadAndPut {
                    let me = fabric.rank().number();
                    let puts = probe.add(PUTS + me, 1) + 1;
                    fabric.put_word(&put_by(u64::from(me))?, puts).await?;
                }
                probe.subtract(READERS, 1);
                match role {
                    ReadReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                    _ => guard.release().await?,
                }
            }
        }
        probe.step((round, without, format!("{lock:?}"), probe.stored()));
    }
    Ok(())
}

/// The back-off that costs the explorer the fewest states: all its sleeps are the same.
///
/// The explorer decides when a sleep ends, as it decides the duration of every other event. So
/// these few attempts cover every case that more attempts could encounter, except that a rank
/// eventually acquires the lock.
pub(super) const PACE: BackOff = BackOff { first: Duration::from_nanos(1), doublings: 0, attempts: 3, seed: 0 };

/// Returns one rank's part with one of the locks.
///
/// # Panics
/// With [`LockKind::Recoverable`], which has a separate program.
pub(super) fn part(fabric: Fabric, lock: LockKind, probe: Probe, role: Role, n: usize) -> Run {
    match lock {
        LockKind::BackOff => Box::pin(rounds::<BackOffLock>(fabric, PACE, probe, role, n)),
        LockKind::TwoLevels => Box::pin(rounds::<WindowLock>(fabric, PACE, probe, role, n)),
        LockKind::ByNodeBackOff => {
            let options = AggregatedOptions { lock: PACE, ..AggregatedOptions::default() };
            Box::pin(rounds::<Aggregated<BackOffLock>>(fabric, options, probe, role, n))
        }
        LockKind::Recoverable => unreachable!("it has a program of its own"),
        kind => with_lock!(kind, L, options => Box::pin(rounds::<L>(fabric, options, probe, role, n))),
    }
}

/// Returns the program of a job with a lock with queues, of `n` rounds, with one mutated step of
/// the lock, or none.
pub fn job(lock: LockKind, roles: &[Role], n: usize, mutant: Option<QueuedMutant>) -> impl Fn(Fabric) -> Run + use<> {
    let roles = roles.to_vec();
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let fabric = match mutant {
            None => fabric,
            Some(mutant) => queued_mutant(fabric, lock, mutant),
        };
        part(fabric, lock, probe, role, n)
    }
}

/// Returns an explorer with the invariants of a [`job`].
pub fn explorer(roles: &[Role]) -> Explorer<'static> {
    let names =
        [(0, "count"), (8, "readers"), (16, "tail"), (24, "head"), (64, "published"), (80, "wake"), (88, "next")];
    let explorer = names.iter().fold(of_any_lock(roles), |explorer, (at, name)| explorer.name(0, *at, name));
    explorer.at_end("idle", |view| {
        assert_idle(lock_words(view, 0, u64::MAX));
        true
    })
}

/// Returns an explorer with the invariants of a job of any lock.
pub(super) fn of_any_lock(roles: &[Role]) -> Explorer<'static> {
    let readers = roles.iter().filter(|role| !role.writes()).count() as u64;
    let runs_out = roles.iter().any(|role| role.runs_out());
    Explorer::new(roles.len())
        .leave_together()
        .name(1, 0, "data")
        .always("mutual exclusion", |view| {
            view.fact(WRITERS) == 0 || view.fact(WRITERS) == 1 && view.fact(READERS) == 0
        })
        .possible("all readers inside together", move |view| view.fact(READERS) == readers)
        .possible("somebody wrote", {
            let writers = readers < roles.len() as u64;
            move |view| !writers || view.fact(WRITES) > 0
        })
        .possible("somebody has no node left", move |view| !runs_out || view.fact(REFUSED) > 0)
}
