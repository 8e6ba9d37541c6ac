//! Random programs of a few operations, and the ways in which they end.

use Line::*;
use explore::{Explorer, Probe, Report};
use fastrand::Rng;
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, LocalSpan, ProgramResult, Rank, Refused, Region, RegionKey, RemoteAddr, Time, join,
    op,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

const WORDS: u64 = 2;

/// The first of the facts of helpers.
const HELPERS: u32 = 100;

/// One line of a program. Words are numbered over all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line {
    Load(u64),
    Store(u64, u64),
    Put(u64, u64),
    PutNotified(u64, u64),
    /// A put from registered memory that changes in the meantime.
    PutFrom(u64),
    Get(u64),
    Add(u64, u64),
    Swap(u64, u64),
    /// An atomic whose handle is dropped.
    Send(u64),
    /// Two operations at the same time.
    Both(u64, u64),
    Flush(u64),
    FlushAll,
    TryNotice,
    /// A wait until the word is not zero, or for a limited time.
    Wait(u64),
    Detach(u64, u64),
    /// A drop of the rank's own words. A rank that then uses them ends its program.
    Drop,
}

pub(super) struct Dice(pub(super) Rng);

impl Dice {
    pub(super) fn line(&mut self, ranks: u64, drops: bool) -> Line {
        if drops && self.0.u64(..5) == 0 {
            return Drop;
        }
        let (any, own, value) = (self.0.u64(..ranks * WORDS), self.0.u64(..WORDS), 1 + self.0.u64(..3));
        match self.0.u64(..17) {
            0 => Load(own),
            1 => Store(own, value),
            2 | 3 => Put(any, value),
            4 => PutNotified(any, value),
            5 => PutFrom(any),
            6 => Get(any),
            7 | 8 => Add(any, value),
            9 => Swap(any, value),
            10 => Send(any),
            11 => Both(any, self.0.u64(..ranks * WORDS)),
            12 => Flush(self.0.u64(..ranks)),
            13 => FlushAll,
            14 => TryNotice,
            15 => Wait(own),
            _ => Detach(any, self.0.u64(..ranks * WORDS)),
        }
    }
}

/// Executes the lines, of which a helper has the second half if the ranks are `helped`. Words
/// outlive the program unless it `drops` its own.
async fn follow(fabric: Fabric, mut lines: Vec<Line>, helped: bool, drops: bool) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8 * WORDS as usize).await?;
    let (key, fact) = (region.key(), fabric.rank().number());
    if helped {
        let lines: Vec<_> = lines.drain(lines.len() / 2..).filter(|line| !matches!(line, TryNotice)).collect();
        fabric.helper("half", move |fabric| do_all(fabric, key, None, lines, fact + HELPERS, drops))?;
    }
    do_all(fabric, key, Some(region), lines, fact, drops).await
}

/// Executes lines until one fails because a rank or a region that it uses is lost. The observed
/// values become a fact.
async fn do_all(
    fabric: Fabric,
    key: RegionKey,
    own: Option<Region>,
    lines: Vec<Line>,
    fact: u32,
    drops: bool,
) -> ProgramResult<()> {
    let mut seen = 1u64;
    let mut see = |value: u64| seen = seen.wrapping_mul(31).wrapping_add(value);
    if let Err(error) = steps(&fabric, key, own, lines, &mut see).await {
        match error.downcast_ref() {
            Some(FabricError::PeerLost { rank }) => see(20 + u64::from(rank.number())),
            Some(FabricError::StaleRegion { rank, .. }) if drops => see(24 + u64::from(rank.number())),
            _ => return Err(error),
        }
    }
    Probe::of(&fabric).set(fact, seen);
    Ok(())
}

async fn steps(
    fabric: &Fabric,
    key: RegionKey,
    mut own: Option<Region>,
    lines: Vec<Line>,
    see: &mut impl FnMut(u64),
) -> ProgramResult<()> {
    let scratch = fabric.alloc(8)?;
    let at = |rank, word: u64| RemoteAddr { rank, region: key, offset: word * 8 };
    let there = |word: u64| fabric.remote_word::<u64>(at(Rank::new((word / WORDS) as u32), word % WORDS));
    let here = |word: u64| fabric.local_word::<u64>(at(fabric.rank(), word));
    for line in lines {
        match line {
            Drop => drop(own.take()),
            Load(word) => see(fabric.load(&here(word)?)?),
            Store(word, value) => fabric.store(&here(word)?, value)?,
            Put(word, value) => fabric.put_word(&there(word)?, value).await?,
            PutNotified(word, value) => drop(fabric.put_notify(&there(word)?.as_span(), [value], value).await?),
            PutFrom(word) => {
                let source: LocalSpan<u64> = scratch.span(fabric, 0, 1)?;
                fabric.write(&source, &[5])?;
                let put = op::Put { to: &there(word)?.as_span(), from: source.clone(), notice: None };
                let handle = fabric.try_post(put).map_err(refused)?;
                fabric.write(&source, &[6])?;
                handle.await?;
            }
            Get(word) => see(fabric.get_word(&there(word)?).await?),
            Add(word, value) => see(fabric.fetch_add(&there(word)?, value).await?),
            Swap(word, value) => see(fabric.swap(&there(word)?, value).await?),
            Send(word) => {
                let atomic = op::Atomic { word: &there(word)?, amo: Amo::Add(16) };
                drop(fabric.try_post(atomic).map_err(refused)?);
            }
            Both(one, other) => {
                let (one, other) = (there(one)?, there(other)?);
                let (a, b) = join::join(fabric.fetch_add(&one, 1), fabric.get_word(&other)).await;
                see(a?);
                see(b?);
            }
            Flush(rank) => fabric.flush(Rank::new(rank as u32)).await?,
            FlushAll => fabric.flush_all().await?,
            TryNotice => {
                see(fabric.try_notice()?.map_or(0, |notice| notice.data + 8 * u64::from(notice.from.number())))
            }
            Wait(word) => {
                let word = here(word)?;
                let wait = fabric.wait_until(&word, Deps::All, |value| value != 0);
                see(fabric.before(Time::from_picos(1), wait).await.transpose()?.unwrap_or(9));
            }
            Detach(one, other) => {
                let (owner, one, other) = (fabric.clone(), there(one)?, there(other)?);
                fabric.detach(async move {
                    if let Ok(old) = owner.fetch_add(&one, 64).await {
                        let _ = owner.put_word(&other, old + 32).await;
                    }
                });
            }
        }
    }
    Ok(())
}

fn refused<T>(why: Refused<T>) -> FabricError {
    match why {
        Refused::Failed(error, _) => error,
        Refused::Full(_) => panic!("there is always room"),
    }
}

/// Returns all ways to end (facts and words), the report, and the number of ends with a dead rank.
pub(super) fn ends(
    explorer: Explorer<'_>,
    program: &[Vec<Line>],
    helped: bool,
    drops: bool,
) -> (BTreeSet<Vec<u64>>, Report, u64) {
    let ranks = program.len() as u32;
    let (ends, dead) = (RefCell::new(BTreeSet::new()), Cell::new(0u64));
    let report = explorer
        .at_end("noted", |view| {
            // The point at which a dead rank stopped does not matter for memory that only its CPU
            // touched. The facts of the other ranks contain their observations of its memory.
            let words = view.words().filter(|(addr, _)| !view.is_lost(addr.rank));
            let words = words.flat_map(|(addr, value)| [addr.rank.number().into(), addr.offset, value]);
            let facts = (0..ranks).flat_map(|rank| [view.fact(rank), view.fact(rank + HELPERS)]);
            ends.borrow_mut().insert(facts.chain(words).collect());
            dead.set(dead.get() + u64::from((0..ranks).any(|rank| view.is_lost(Rank::new(rank)))));
            true
        })
        .run(|fabric| {
            let lines = program[fabric.rank().index()].clone();
            follow(fabric, lines, helped, drops)
        });
    (ends.take(), report, dead.get())
}
