//! Locks under exploration: what ranks do, and what must hold.

use super::mutant::{Fair, Rp, Step, Subject, assert_idle, mutant};
use explore::{Explorer, Probe};
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{FairLock, PackedLock, RpLock, WritersFirstLock},
};

/// What a rank does, any number of times.
#[allow(dead_code, reason = "not every checker needs all of them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    Write,
    TryRead,
    TryWrite,
    /// With a deadline, which comes at any moment.
    ReadBefore,
    WriteBefore,
    /// Drops the acquisition at any moment.
    ReadDropped,
    WriteDropped,
    /// Drops the release at any moment.
    ReadReleaseDropped,
    WriteReleaseDropped,
    /// Reads, and puts to a word that only it writes.
    ReadAndPut,
    /// Writes, and looks at what readers put.
    WriteAndLook,
    /// These, one after the other and once, in place of a number of rounds.
    Turns(&'static [Role]),
}
use Role::*;

const HOME: Rank = Rank::new(0);
const DEADLINE: Time = Time::from_picos(1);

/// Facts: who is inside, and how often something was written.
const WRITERS: u32 = 0;
const READERS: u32 = 1;
const WRITES: u32 = 2;
/// How often rank 0, 1, ... put something as a reader.
const PUTS: u32 = 100;
/// How often somebody had no node left.
const REFUSED: u32 = 3;

/// Queue nodes per rank and lock.
const NODES: usize = 4;

impl Role {
    pub(crate) fn writes(self) -> bool {
        match self {
            Turns(turns) => turns.iter().any(|turn| turn.writes()),
            role => matches!(role, Write | TryWrite | WriteBefore | WriteDropped | WriteReleaseDropped | WriteAndLook),
        }
    }

    fn gives_up(self) -> bool {
        matches!(self, ReadBefore | WriteBefore | ReadDropped | WriteDropped)
    }

    /// Whether all its nodes may be left behind in queues when it needs one more.
    fn runs_out(self) -> bool {
        match self {
            Turns([before @ .., _]) => before.iter().filter(|turn| turn.gives_up()).count() >= NODES,
            _ => false,
        }
    }
}

/// A deadline that came is no error here, nor is a lock that was taken at every attempt.
pub(crate) fn in_time<G>(outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TimedOut | LockError::Contended { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The same, and that no node is left is none if so many acquisitions of this rank gave up.
fn had<G>(probe: &Probe, gave_up: u32, outcome: Result<G, LockError>) -> Result<Option<G>, LockError> {
    match outcome {
        Err(LockError::TooManyWaiting { .. }) if gave_up as usize >= NODES => {
            probe.add(REFUSED, 1);
            Ok(None)
        }
        outcome => in_time(outcome),
    }
}

/// One rank's part, `n` times: take the lock, look at the data or change it, let go.
///
/// A step ends when the lock is held and when it has been let go. What a rank remembers then is what the guard and the lock show of
/// themselves, what it stored in its own words, and in which rounds it gave up.
pub(crate) async fn rounds<L: RmaLock>(
    fabric: Fabric,
    options: L::Options,
    probe: Probe,
    role: Role,
    n: usize,
) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let shared = fabric.alloc_symmetric(8 * (1 + fabric.ranks())).await?;
    // With the last rank: the data need not be where the lock is.
    let word = fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 0))?;
    let put_by = |rank: u64| fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 8 * (1 + rank)));
    // In which rounds the lock was not got: somebody may still have to act on a node that was left behind.
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

/// [`rounds`] for each rank, with one step of the lock done wrong, or none.
pub(crate) fn job(subject: Subject, roles: &[Role], n: usize, step: Step) -> impl Fn(Fabric) -> Run + use<> {
    let roles = roles.to_vec();
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        match (step, subject) {
            (Step::Right, subject) => with(fabric, subject, probe, role, n),
            (step, Subject::Fair) => with(mutant(fabric, Fair::new(step)), subject, probe, role, n),
            (step, _) => with(mutant(fabric, Rp::new(step)), subject, probe, role, n),
        }
    }
}

fn with(fabric: Fabric, subject: Subject, probe: Probe, role: Role, n: usize) -> Run {
    match subject {
        Subject::Flat => Box::pin(rounds::<RpLock>(fabric, (), probe, role, n)),
        Subject::Packed => Box::pin(rounds::<PackedLock>(fabric, (), probe, role, n)),
        Subject::WritersFirst => Box::pin(rounds::<WritersFirstLock>(fabric, (), probe, role, n)),
        Subject::Fair => Box::pin(rounds::<FairLock>(fabric, (), probe, role, n)),
    }
}

pub(crate) type Run = std::pin::Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// What must hold of such a job.
pub(crate) fn explorer(roles: &[Role]) -> Explorer<'static> {
    let names =
        [(0, "count"), (8, "readers"), (16, "tail"), (24, "head"), (64, "published"), (80, "wake"), (88, "next")];
    let explorer = names.iter().fold(of_any_lock(roles), |explorer, (at, name)| explorer.name(0, *at, name));
    explorer.at_end("idle", |view| {
        assert_idle(
            view.words()
                .filter(|(addr, _)| addr.region.index == 0)
                .map(|(addr, value)| (addr.rank.index(), addr.offset as usize / 8, value)),
        );
        true
    })
}

/// What must hold of [`rounds`] with any lock.
pub(crate) fn of_any_lock(roles: &[Role]) -> Explorer<'static> {
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
