//! The program of a job: its turns, and the facts that they record.

use super::super::program::{DEADLINE, HOME, in_time};
use Manner::*;
use explore::Probe;
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{
    Access::{self, *},
    AccessLock, Guard, LockError,
};

pub(super) const A: Rank = Rank::new(0);

pub(super) const B: Rank = Rank::new(1);

/// Facts that count the ranks inside (exclusive holders of rank 0, 1, ..., shared holders of each
/// rank, and holders of all) and the writes of each rank's data.
pub(super) const EXCLUSIVE: u32 = 10;

pub(super) const SHARED: u32 = 20;

pub(super) const EVERYWHERE: u32 = 30;

const WRITES: u32 = 40;

/// The first of the facts that count puts by non-exclusive holders, by the target rank and the
/// poster.
const PUTS: u32 = 60;

fn puts(to: Rank, by: u32) -> u32 {
    PUTS + 8 * to.number() + by
}

/// Returns the fact that counts the holders of `access`.
pub(super) fn fact(access: Access) -> u32 {
    match access {
        Exclusive(rank) => EXCLUSIVE + rank.number(),
        Shared(rank) => SHARED + rank.number(),
        All => EVERYWHERE,
    }
}

/// The way in which a rank makes its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Plain,
    Try,
    /// With a deadline, which expires at any moment.
    Before,
    /// The acquisition is dropped at any moment.
    Dropped,
    /// The release is dropped at any moment.
    ReleaseDropped,
    /// A non-exclusive holder, in addition to reading, puts to a word that only it writes; an
    /// exclusive holder checks the puts of the others.
    Puts,
}

pub(super) type Turn = (Access, Manner);

pub(super) const fn all(manner: Manner) -> Turn {
    (All, manner)
}

/// Makes an access, reads or changes the data, and ends the access, `n` times: one rank's part.
pub(super) async fn rounds<L: AccessLock>(
    fabric: Fabric,
    options: L::Options,
    probe: Probe,
    (access, manner): Turn,
    n: usize,
) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let data = fabric.alloc_symmetric(if manner == Puts { 8 * (1 + fabric.ranks()) } else { 8 }).await?;
    let put_by = |rank: Rank, by: u32| fabric.remote_word::<u64>(data.at(rank, 8 * (1 + u64::from(by))));
    let me = fabric.rank().number();
    let word = |rank: Rank| fabric.remote_word::<u64>(data.at(rank, 0));
    let mut without = 0u64;
    for round in 0..n {
        without |= 1 << round;
        let guard = match manner {
            Plain | ReleaseDropped | Puts => Some(lock.lock(access).await?),
            Try => lock.try_lock(access).await?,
            Before => in_time(lock.lock_before(access, DEADLINE).await)?,
            Dropped => {
                let locked = fabric.before(DEADLINE, lock.lock(access)).await;
                in_time(locked.unwrap_or(Err(LockError::TimedOut)))?
            }
        };
        if let Some(guard) = guard {
            without &= !(1 << round);
            // The rank's state also includes state of the lock that the guard does not show, such
            // as its nodes.
            probe.step((round, without, format!("{guard:?} {lock:?}"), probe.stored()));
            probe.add(fact(access), 1);
            let looks_at = match access {
                All => (0..fabric.ranks() as u32).map(Rank::new).collect(),
                Shared(rank) | Exclusive(rank) => vec![rank],
            };
            for rank in looks_at {
                let (seen, writes) = (fabric.get_word(&word(rank)?).await?, probe.get(WRITES + rank.number()));
                assert_eq!(seen, writes, "visibility: a released write was missed");
                if manner == Puts && !matches!(access, Exclusive(_)) {
                    let before = probe.add(puts(rank, me), 1);
                    fabric.put_word(&put_by(rank, me)?, before + 1).await?;
                }
            }
            if let Exclusive(rank) = access {
                for by in 0..if manner == Puts { fabric.ranks() as u32 } else { 0 } {
                    let (seen, puts) = (fabric.get_word(&put_by(rank, by)?).await?, probe.get(puts(rank, by)));
                    assert_eq!(seen, puts, "visibility: what another put was missed");
                }
                let before = probe.add(WRITES + rank.number(), 1);
                fabric.put_word(&word(rank)?, before + 1).await?;
            }
            probe.subtract(fact(access), 1);
            match manner {
                ReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                _ => guard.release().await?,
            }
        }
        probe.step((round, without, format!("{lock:?}"), probe.stored()));
    }
    Ok(())
}
