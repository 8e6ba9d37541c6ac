//! What ranks do unnoticed is done at once. That must lose no outcome: random programs end in the same ways with and without.

use explore::{ExploreFabric, Explorer, Report};
use rdma_fabric::{
    Amo, Caps, Deps, Fabric, LocalSpan, ProgramResult, PutOptions, PutOrder, Rank, Region, RegionAccess, Time, join, op,
};
use std::{cell::RefCell, collections::BTreeSet};

const WORDS: u64 = 2;

/// One line of a program. Words are numbered over all ranks.
#[derive(Clone, Copy, Debug)]
enum Line {
    Load(u64),
    Store(u64, u64),
    Put(u64, u64),
    PutNotified(u64, u64),
    /// From registered memory, which changes meanwhile.
    PutFrom(u64),
    Get(u64),
    Add(u64, u64),
    Swap(u64, u64),
    /// The handle is dropped.
    Send(u64),
    /// Two at once.
    Both(u64, u64),
    Flush(u64),
    FlushAll,
    TryNotice,
    /// Until it is not zero, or for a while.
    Wait(u64),
    Detach(u64, u64),
}
use Line::*;

/// A small generator; its high bits are the better ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn line(&mut self, ranks: u64) -> Line {
        let (any, own, value) = (self.below(ranks * WORDS), self.below(WORDS), 1 + self.below(3));
        match self.below(17) {
            0 => Load(own),
            1 => Store(own, value),
            2 | 3 => Put(any, value),
            4 => PutNotified(any, value),
            5 => PutFrom(any),
            6 => Get(any),
            7 | 8 => Add(any, value),
            9 => Swap(any, value),
            10 => Send(any),
            11 => Both(any, self.below(ranks * WORDS)),
            12 => Flush(self.below(ranks)),
            13 => FlushAll,
            14 => TryNotice,
            15 => Wait(own),
            _ => Detach(any, self.below(ranks * WORDS)),
        }
    }
}

/// Follow the lines; what was seen becomes a fact.
async fn follow(fabric: ExploreFabric, lines: Vec<Line>) -> ProgramResult<()> {
    let (probe, me) = (fabric.probe(), fabric.rank());
    let region = fabric.alloc_symmetric(8 * WORDS as usize).await?;
    let scratch = fabric.alloc(8)?;
    let there = |word: u64| fabric.remote_word::<u64>(region.at(Rank::new((word / WORDS) as u32), word % WORDS * 8));
    let here = |word: u64| region.word::<u64>(&fabric, word as usize * 8);
    let mut seen = 1u64;
    let mut see = |value: u64| seen = seen.wrapping_mul(31).wrapping_add(value);
    for line in lines {
        match line {
            Load(word) => see(fabric.load(&here(word)?)?),
            Store(word, value) => fabric.store(&here(word)?, value)?,
            Put(word, value) => fabric.put_word(&there(word)?, value).await?,
            PutNotified(word, value) => drop(fabric.put_notify(&there(word)?.as_span(), [value], value).await?),
            PutFrom(word) => {
                let source: LocalSpan<_, u64> = scratch.span(&fabric, 0, 1)?;
                fabric.write(&source, &[5])?;
                let put = op::Put { to: &there(word)?.as_span(), from: source.clone(), options: PutOptions::default() };
                let handle = fabric.try_post(put).expect("room");
                fabric.write(&source, &[6])?;
                handle.await?;
            }
            Get(word) => see(fabric.get_word(&there(word)?).await?),
            Add(word, value) => see(fabric.fetch_add(&there(word)?, value).await?),
            Swap(word, value) => see(fabric.swap(&there(word)?, value).await?),
            Send(word) => drop(fabric.try_post(op::Atomic { word: &there(word)?, amo: Amo::Add(16) }).expect("room")),
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
                    let old = owner.fetch_add(&one, 64).await.expect("no error");
                    owner.put_word(&other, old + 32).await.expect("no error");
                });
            }
        }
    }
    probe.set(me.number(), seen);
    Ok(())
}

/// All ways to end: facts and words.
fn ends(explorer: Explorer<'_>, ranks: usize, program: &[Vec<Line>]) -> (BTreeSet<Vec<u64>>, Report) {
    let ends = RefCell::new(BTreeSet::new());
    let report = explorer
        .at_end("noted", |view| {
            let words = view.words().flat_map(|(addr, value)| [addr.rank.number().into(), addr.offset, value]);
            ends.borrow_mut().insert((0..ranks as u32).map(|rank| view.fact(rank)).chain(words).collect());
            true
        })
        .run(|fabric| {
            let lines = program[fabric.rank().index()].clone();
            follow(fabric, lines)
        });
    (ends.take(), report)
}

fn compare(ranks: usize, lines: usize, programs: u64, order: PutOrder) {
    let (mut caps, mut saved, mut most) = (Caps::weakest(), 0, 0);
    caps.put_order = order;
    for seed in 0..programs {
        let mut dice = Dice(seed * 1_000 + lines as u64);
        let program: Vec<Vec<_>> = (0..ranks).map(|_| (0..lines).map(|_| dice.line(ranks as u64)).collect()).collect();
        let with = |explorer: Explorer<'_>| ends(explorer.caps(caps).state_limit(400_000), ranks, &program);
        let (expected, whole) = with(Explorer::new(ranks).unreduced());
        let (found, reduced) = with(Explorer::new(ranks));
        if !matches!(whole.verdict, explore::Verdict::Exhausted) {
            continue;
        }
        reduced.expect_exhausted();
        assert_eq!(found, expected, "seed {seed}: {program:?}");
        saved += whole.states - reduced.states;
        most = most.max(expected.len());
    }
    println!(
        "{programs} programs of {ranks} ranks x {lines} lines, {order:?}: {saved} states less, at most {most} ends"
    );
    assert!(saved > 0 && most > 5, "nothing was compared");
}

#[test]
fn two_ranks_end_in_the_same_ways() {
    compare(2, 3, 100, PutOrder::None);
    compare(2, 4, 20, PutOrder::None);
    compare(2, 3, 40, PutOrder::SameTarget);
}

#[test]
fn three_ranks_end_in_the_same_ways() {
    compare(3, 2, 60, PutOrder::None);
    compare(3, 2, 20, PutOrder::AllTargets);
}
