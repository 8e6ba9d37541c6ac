//! The lock that survives deaths, when ranks die: every live rank acquires it, never together with
//! another, and torn data is always reported.
//!
//! The home is rank 0 and never dies. Writers change two words, one after another; a death in
//! between leaves them different.

use super::{
    Record,
    program::{
        HOME,
        Role::{self, *},
    },
};
use crate::exploration::{Expected, Exploration, Run};
use explore::{Explorer, Fabric, Probe, Rank, View};
use rdma_fabric::ProgramResult;
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery},
};

/// The facts that record the ranks inside, in a byte for each rank.
const WRITERS: u32 = 0;
const READERS: u32 = 1;
/// The fact that counts findings of torn data.
const TORN: u32 = 2;
/// The first of the facts that state whether rank 0, 1, ... has put a value as a reader and
/// released the lock.
const PUTS: u32 = 100;

/// Acquires the lock once: one rank's part.
pub(super) async fn once(fabric: Fabric, probe: Probe, role: Role, deaths: usize) -> ProgramResult<()> {
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(deaths)).await?;
    let region = fabric.alloc_symmetric(16 + 8 * fabric.ranks()).await?;
    let put_by = |rank: u32| fabric.remote_word::<u64>(region.at(HOME, 16 + 8 * u64::from(rank)));
    let record = Record::new(&fabric, &region)?;
    let me = 1 << (8 * fabric.rank().number());
    if role.writes() {
        let (guard, torn) = record.write(&lock).await?;
        if torn {
            probe.add(TORN, 1);
        }
        probe.add(WRITERS, me);
        let version = record.version("a writer").await?;
        record.set(version + 1).await?;
        if role == WriteAndLook {
            for rank in 0..fabric.ranks() as u32 {
                let puts = probe.get(PUTS + rank);
                let put = fabric.get_word(&put_by(rank)?).await?;
                assert!(put >= puts, "visibility: a writer missed what a reader put");
            }
        }
        probe.subtract(WRITERS, me);
        guard.release().await?;
    } else {
        match lock.read().await {
            Err(LockError::Torn { .. }) => {}
            guard => {
                let guard = guard?;
                probe.add(READERS, me);
                record.version("a reader").await?;
                if role == ReadAndPut {
                    fabric.put_word(&put_by(fabric.rank().number())?, 1).await?;
                }
                probe.subtract(READERS, me);
                guard.release().await?;
                if role == ReadAndPut {
                    probe.set(PUTS + fabric.rank().number(), 1);
                }
            }
        }
    }
    Ok(())
}

/// Returns the number of live ranks inside.
fn inside(view: &View<'_>, fact: u32, ranks: usize) -> usize {
    let there = |rank: &usize| view.fact(fact) >> (8 * rank) & 0xff != 0;
    (0..ranks).filter(there).filter(|rank| !view.is_lost(Rank::new(*rank as u32))).count()
}

/// Returns an explorer with the invariants of a job in which the `mortal` ranks may die.
pub(super) fn explorer(roles: &'static [Role], mortal: &[u32]) -> Explorer<'static> {
    let ranks = roles.len();
    let explorer = Explorer::new(ranks).leave_together().always("exclusion among the living", move |view| {
        let (writers, readers) = (inside(view, WRITERS, ranks), inside(view, READERS, ranks));
        writers == 0 || writers == 1 && readers == 0
    });
    let writer_dies = mortal.iter().any(|rank| roles[*rank as usize].writes());
    let explorer = explorer
        .possible("somebody finds torn data", move |view| !writer_dies || !roles[0].writes() || view.fact(TORN) > 0);
    mortal.iter().fold(explorer, |explorer, rank| {
        let rank = Rank::new(*rank);
        explorer.mortal(rank).possible("it dies", move |view| view.is_lost(rank))
    })
}

fn exploration(roles: &'static [Role], mortal: &'static [u32], expected: Expected) -> Exploration {
    let program = move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        Box::pin(once(fabric, probe, role, mortal.len())) as Run
    };
    let name = format!("RecoverableLock: {roles:?}, mortal {mortal:?}");
    Exploration::new(name, expected, move || explorer(roles, mortal), program)
}

/// Returns the explorations of the lock that survives deaths.
pub(super) fn explorations() -> Vec<Exploration> {
    const EXHAUSTED: [(&[Role], &[u32]); 6] = [
        (&[Read, Read], &[1]),
        (&[Read, Write], &[1]),
        (&[Write, Read], &[1]),
        (&[Write, Write], &[1]),
        (&[ReadAndPut, WriteAndLook], &[]),
        (&[WriteAndLook, ReadAndPut], &[]),
    ];
    /// Jobs larger than can be exhausted.
    const AT_RANDOM: [(&[Role], &[u32]); 7] = [
        (&[Read, Write, Read], &[1]),
        (&[Write, Write, Write], &[1]),
        (&[Read, Write, Write], &[1, 2]),
        (&[Write, Read, Write, Write], &[1, 2]),
        (&[Read, Write, Read, Write], &[1, 2, 3]),
        (&[Write, Write, Write, Read, Read], &[1, 2, 3, 4]),
        (&[ReadAndPut, WriteAndLook, ReadAndPut, WriteAndLook], &[1, 2]),
    ];
    let exhausted = EXHAUSTED.map(|(roles, mortal)| exploration(roles, mortal, Expected::Exhausted { at_least: 1 }));
    let random = AT_RANDOM.map(|(roles, mortal)| exploration(roles, mortal, Expected::Sampled { runs: 4_000 }));
    exhausted.into_iter().chain(random).collect()
}
