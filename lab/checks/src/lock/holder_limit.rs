//! A reader beyond the limit of readers: it is refused, undoes its count, and, if it is the last to
//! leave, admits the writer that waits for the readers.
//!
//! No test can acquire a lock as often as the limit allows. So for a while one reader counts as
//! that many.

use super::{
    mutants::word,
    program::{HOME, PACE, READERS, WRITERS, in_time},
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Fabric, ProgramResult, Region, RegionKey, RemoteAddr, RemoteWord, Result};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{BackOff, BackOffLock, BargingLock, PackedLock, RpLock, WindowLock, WritersFirstLock},
};
use std::cell::Cell;

/// The fact that counts refusals.
const REFUSED: u32 = 2;
const PACE_OF_TWO: BackOff = BackOff { attempts: 2, ..PACE };
/// The number of holders that a word can count.
const MOST: u64 = 1 << 26;

/// The offset at the home where a lock counts its readers, and the increment of each reader.
#[derive(Clone, Copy, Debug)]
struct Count {
    offset: u64,
    one: u64,
}

/// The count of the locks with queues that count readers.
const QUEUED: Count = Count { offset: 0, one: 4 };

/// A mutated step of a reader that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalMutant {
    /// It stays counted.
    NotTakenBack,
    /// It does not see that it was the last reader before a writer.
    NobodyLetIn,
}

/// Inserts a [`RefusalMutant`] between one rank's fabric and its lock with queues.
pub fn refusal_mutant(fabric: Fabric, mutant: RefusalMutant) -> Fabric {
    mutated(fabric, MutatedRefusal { mutant, count: QUEUED, refused: Cell::new(false) })
}

/// Raises the count of a lock with queues from one to its limit for a moment. The lock's region is
/// the one allocated before `next`.
pub async fn preset(fabric: &Fabric, next: &Region) -> Result<()> {
    preset_count(fabric, next, QUEUED).await
}

async fn preset_count(fabric: &Fabric, next: &Region, count: Count) -> Result<()> {
    let region = RegionKey { index: next.key().index - 1, ..next.key() };
    let word: RemoteWord<u64> = fabric.remote_word(RemoteAddr { rank: HOME, region, offset: count.offset })?;
    let others = (MOST - 1) * count.one;
    fabric.fetch_add(&word, others).await?;
    fabric.fetch_add(&word, others.wrapping_neg()).await?;
    Ok(())
}

/// A [`RefusalMutant`] at one rank.
#[derive(Debug)]
struct MutatedRefusal {
    mutant: RefusalMutant,
    count: Count,
    /// Whether the next subtraction undoes a refused addition.
    refused: Cell<bool>,
}

impl MutatedRefusal {
    fn is(&self, mutant: RefusalMutant, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        let uncounts = word(addr, self.count.offset) && amo == Amo::Add(self.count.one.wrapping_neg());
        self.mutant == mutant && uncounts && self.refused.take()
    }
}

impl Mutant for MutatedRefusal {
    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        // Or(0) reads and leaves the value unchanged.
        if self.is(RefusalMutant::NotTakenBack, addr, amo) { Amo::Or(0) } else { amo }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        let Count { offset, one } = self.count;
        if word(addr, offset) && amo == Amo::Add(one) {
            // This leaves out the flags.
            self.refused.set(old % (4 * MOST * one) >= MOST * one);
        }
        if self.is(RefusalMutant::NobodyLetIn, addr, amo) { old + one } else { old }
    }
}

/// Rank 0 reads and counts as the maximum number of readers, rank 1 reads, rank 2 writes.
async fn part<L: RmaLock>(fabric: Fabric, options: L::Options, probe: Probe, count: Count) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let second = fabric.alloc_symmetric(8).await?;
    match fabric.rank().number() {
        0 => {
            let Some(guard) = in_time(lock.read().await)? else { return Ok(()) };
            probe.add(READERS, 1);
            preset_count(&fabric, &second, count).await?;
            probe.subtract(READERS, 1);
            guard.release().await?;
        }
        1 => match lock.read().await {
            Err(LockError::TooManyHolders { most }) if u64::from(most) == MOST => drop(probe.add(REFUSED, 1)),
            outcome => {
                let Some(guard) = in_time(outcome)? else { return Ok(()) };
                probe.add(READERS, 1);
                probe.subtract(READERS, 1);
                guard.release().await?;
            }
        },
        _ => {
            let Some(guard) = in_time(lock.write().await)? else { return Ok(()) };
            probe.add(WRITERS, 1);
            probe.subtract(WRITERS, 1);
            guard.release().await?;
        }
    }
    Ok(())
}

fn explorer(count: Count) -> Explorer<'static> {
    Explorer::new(3)
        .leave_together()
        .name(0, count.offset, "count")
        .state_limit(2_000_000)
        .always("mutual exclusion", |view| {
            view.fact(WRITERS) == 0 || view.fact(WRITERS) == 1 && view.fact(READERS) == 0
        })
        .possible("a reader is refused", |view| view.fact(REFUSED) == 1)
        .possible("a reader is not refused", |view| view.fact(READERS) == 2)
        .at_end("nobody is counted", move |view| {
            let counted = view.words().find(|(addr, _)| word(*addr, count.offset));
            counted.is_none_or(|(_, value)| (value / count.one).is_multiple_of(4 * MOST))
        })
}

fn exploration<L: RmaLock>(options: L::Options, count: Count, mutant: Option<RefusalMutant>) -> Exploration {
    let (what, expected) = match mutant {
        None => ("one reader too many".into(), Expected::Exhausted { at_least: 1 }),
        Some(mutant) => (format!("{mutant:?}"), Expected::Violated { saying: "", within: 2_000_000 }),
    };
    let program = move |fabric: Fabric| {
        let (probe, options) = (Probe::of(&fabric), options.clone());
        let fabric = match mutant {
            None => fabric,
            Some(mutant) => mutated(fabric, MutatedRefusal { mutant, count, refused: Cell::new(false) }),
        };
        Box::pin(part::<L>(fabric, options, probe, count)) as Run
    };
    let name = format!("{}: {what}", L::NAME);
    // This one has a million states.
    let large = name == "writer preference: one reader too many";
    let size = if large { Size::Quick } else { Size::Test };
    Exploration::new(name, expected, move || explorer(count), program).of_size(size)
}

/// Returns the explorations of a lock without a mutant and with each of `mutants`.
fn of_lock<L: RmaLock>(options: L::Options, count: Count, mutants: &[RefusalMutant]) -> Vec<Exploration> {
    let mutants = [None].into_iter().chain(mutants.iter().copied().map(Some));
    mutants.map(|mutant| exploration::<L>(options.clone(), count, mutant)).collect()
}

/// Returns the explorations of locks at the limit of their holders.
pub(super) fn explorations() -> Vec<Exploration> {
    const BOTH: &[RefusalMutant] = &[RefusalMutant::NotTakenBack, RefusalMutant::NobodyLetIn];
    const TAKEN_BACK: &[RefusalMutant] = &[RefusalMutant::NotTakenBack];
    [
        of_lock::<RpLock>((), QUEUED, BOTH),
        of_lock::<PackedLock>((), QUEUED, BOTH),
        of_lock::<BargingLock>((), QUEUED, BOTH),
        of_lock::<WritersFirstLock>((), QUEUED, BOTH),
        of_lock::<BackOffLock>(PACE_OF_TWO, Count { offset: 0, one: 2 }, TAKEN_BACK),
        of_lock::<WindowLock>(PACE_OF_TWO, Count { offset: 64, one: 1 << 32 }, TAKEN_BACK),
    ]
    .concat()
}
