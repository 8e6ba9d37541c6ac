//! Random programs against a sequential oracle.
//!
//! One rank issues copies and atomics over the memory of three. A program is free of races by
//! construction: where an operation would access words that an earlier, unordered operation
//! accesses, its order is changed to wait for that operation. The outcome is therefore unique,
//! regardless of which rank executes the operations: it is that of executing them one after the
//! other.

use crate::harness::machine;
use acp::{Acp, Atomics, GlobalAddress, Handle, Mode, Options, Order};
use checks::jobs::{threads, virtual_time};
use proptest::{prelude::*, test_runner::Config};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
use std::{ops::Range, time::Duration};

const RANKS: usize = 3;
/// The number of words of each rank, small enough for operations to overlap.
const WORDS: usize = 48;
type Memory = Vec<[u64; WORDS]>;

/// Words of a rank.
type Part = (usize, Range<usize>);

#[derive(Clone, Copy, Debug)]
enum Wish {
    None,
    All,
    Continue,
    /// The operation issued this many operations ago.
    After(usize),
}

#[derive(Clone, Debug)]
enum Step {
    /// Destination, source, their ranks, words.
    Copy {
        to: (usize, usize),
        from: (usize, usize),
        words: usize,
        wish: Wish,
    },
    Atomic {
        to: usize,
        word: (usize, usize),
        amo: Amo<u64>,
        wish: Wish,
    },
    /// Wait for the operation issued this many operations ago; or for all of them, and compare a
    /// rank's memory.
    Complete(usize),
    Compare(usize),
}

/// A call of the interface.
#[derive(Clone, Debug)]
enum Call {
    Copy { to: Part, from: Part, order: Order },
    Atomic { to: usize, word: (usize, usize), amo: Amo<u64>, order: Order },
    Complete(Order),
    Compare(usize, Box<[u64; WORDS]>),
}

/// An operation that was issued.
struct Issued {
    reads: Part,
    writes: Vec<Part>,
    /// The ranks of source and destination, for a copy.
    pair: Option<(usize, usize)>,
    /// All operations up to this one are complete before it starts.
    after: usize,
}

fn meet((rank, words): &Part, (other, others): &Part) -> bool {
    rank == other && words.start < others.end && others.start < words.end
}

impl Issued {
    /// Returns whether the outcome depends on the order of two operations, beyond the order in
    /// which copies of one pair become visible.
    fn races(&self, later: &Issued) -> bool {
        let fifo = self.pair.is_some() && self.pair == later.pair;
        let among = |parts: &[Part], part: &Part| parts.iter().any(|one| meet(one, part));
        among(&self.writes, &later.reads)
            || among(&later.writes, &self.reads)
            || !fifo && later.writes.iter().any(|part| among(&self.writes, part))
    }
}

/// Translates steps to calls, and executes them one after the other.
struct Oracle {
    memory: Memory,
    issued: Vec<Issued>,
    /// All operations up to this one were completed.
    complete: usize,
    calls: Vec<Call>,
}

fn initial() -> Memory {
    (0..RANKS as u64).map(|rank| std::array::from_fn(|i| (rank + 1) << 32 | (i as u64 + 1))).collect()
}

impl Oracle {
    /// Issues an operation with the requested order, or a stronger one if it would race.
    fn issue(&mut self, reads: Part, writes: Vec<Part>, pair: Option<(usize, usize)>, wish: Wish) -> Order {
        let last = self.issued.len();
        let (after, order) = match wish {
            Wish::None => (0, Order::None),
            Wish::All => (last, Order::All),
            Wish::Continue => match self.issued.last() {
                Some(before) if pair.is_some() && before.pair == pair => (before.after, Order::Continue),
                _ => (last, Order::Continue),
            },
            Wish::After(back) => {
                let handle = last.saturating_sub(back);
                (handle, Order::After(Handle::from_number(handle as i64)))
            }
        };
        let mut new = Issued { reads, writes, pair, after: after.max(self.complete) };
        let mut races = (new.after..last).rev().filter(|&earlier| self.issued[earlier].races(&new));
        let order = match races.next() {
            Some(earlier) => {
                new.after = earlier + 1;
                Order::After(Handle::from_number(earlier as i64 + 1))
            }
            None => order,
        };
        self.issued.push(new);
        order
    }

    fn step(&mut self, step: &Step) {
        match step.clone() {
            Step::Copy { to, from, words, wish } => {
                let part = |(rank, at): (usize, usize)| (rank, at.min(WORDS - words)..at.min(WORDS - words) + words);
                let (to, from) = (part(to), part(from));
                if meet(&to, &from) {
                    return;
                }
                let order = self.issue(from.clone(), vec![to.clone()], Some((from.0, to.0)), wish);
                let values = self.memory[from.0][from.1.clone()].to_vec();
                self.memory[to.0][to.1.clone()].copy_from_slice(&values);
                self.calls.push(Call::Copy { to, from, order });
            }
            Step::Atomic { to, word, amo, wish } => {
                if word == (0, to) {
                    return;
                }
                let part = (word.0, word.1..word.1 + 1);
                let order = self.issue(part.clone(), vec![part, (0, to..to + 1)], None, wish);
                let before = self.memory[word.0][word.1];
                (self.memory[word.0][word.1], self.memory[0][to]) = (amo.apply(before), before);
                self.calls.push(Call::Atomic { to, word, amo, order });
            }
            Step::Complete(back) => {
                let handle = self.issued.len().saturating_sub(back);
                self.complete = self.complete.max(handle);
                self.calls.push(Call::Complete(Order::After(Handle::from_number(handle as i64))));
            }
            Step::Compare(rank) => {
                self.complete = self.issued.len();
                self.calls.push(Call::Complete(Order::All));
                self.calls.push(Call::Compare(rank, Box::new(self.memory[rank])));
            }
        }
    }
}

fn at(acp: &Acp, rank: usize, word: usize) -> acp::Result<GlobalAddress> {
    acp.starter(Rank::new(rank as u32))?.offset_by(8 * word as u64)
}

async fn run(fabric: Fabric, calls: &[Call], options: Options) -> ProgramResult<[u64; WORDS]> {
    let acp = Acp::init_with(&fabric, options.starter_bytes(8 * WORDS)).await?;
    let me = acp.rank().index();
    acp.write(at(&acp, me, 0)?, &initial()[me]).await?;
    acp.sync().await?;
    for (number, call) in calls.iter().enumerate().filter(|_| me == 0) {
        match call {
            Call::Copy { to, from, order } => {
                let (to_at, from_at) = (at(&acp, to.0, to.1.start)?, at(&acp, from.0, from.1.start)?);
                acp.copy(to_at, from_at, 8 * to.1.len(), *order).await?;
            }
            Call::Atomic { to, word, amo, order } => {
                acp.atomic(at(&acp, 0, *to)?, at(&acp, word.0, word.1)?, *amo, *order).await?;
            }
            Call::Complete(until) => {
                acp.complete(*until).await?;
                assert!(acp.is_complete(*until)?);
            }
            Call::Compare(rank, expected) => {
                let mut seen = [0; WORDS];
                acp.read(at(&acp, *rank, 0)?, &mut seen).await?;
                assert_eq!(seen, **expected, "{} after {number} calls", Rank::new(*rank as u32));
            }
        }
    }
    acp.complete_all().await?;
    acp.sync().await?;
    let mut seen = [0; WORDS];
    acp.read(at(&acp, me, 0)?, &mut seen).await?;
    acp.finalize().await?;
    Ok(seen)
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..RANKS, 0..WORDS);
    let wish = || {
        prop_oneof![
            3 => Just(Wish::None),
            1 => Just(Wish::All),
            3 => Just(Wish::Continue),
            2 => (0..6usize).prop_map(Wish::After),
        ]
    };
    let amo = prop_oneof![
        any::<u64>().prop_map(Amo::Add),
        any::<u64>().prop_map(Amo::Swap),
        any::<u64>().prop_map(Amo::Or),
        any::<u64>().prop_map(Amo::And),
        any::<u64>().prop_map(Amo::Xor),
        (0..4u64, any::<u64>()).prop_map(|(expected, new)| Amo::CompareSwap { expected, new }),
    ];
    // Short enough to be copied directly, or not.
    let words = prop_oneof![3 => 1..=8usize, 1 => 9..=20usize];
    prop_oneof![
        12 => (place(), place(), words, wish())
            .prop_map(|(to, from, words, wish)| Step::Copy { to, from, words, wish }),
        5 => (0..WORDS, place(), amo, wish()).prop_map(|(to, word, amo, wish)| Step::Atomic { to, word, amo, wish }),
        1 => (0..5usize).prop_map(Step::Complete),
        1 => (0..RANKS).prop_map(Step::Compare),
    ]
}

/// Every mode, with the network's atomics and without.
fn options() -> impl Strategy<Value = Options> {
    let direct = Options::default();
    let [queue, split] = [Mode::CommandQueue, Mode::Split].map(|mode| direct.mode(mode));
    let modes = vec![direct, direct, direct.serving_helper(true), queue, queue.bypass(true), split, split.bypass(true)];
    let atomics = vec![Atomics::Network, Atomics::LocalByCpu, Atomics::Delegated];
    (prop::sample::select(modes), prop::sample::select(atomics)).prop_map(|(options, by)| options.atomics(by))
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn programs_do_what_their_steps_do_in_turn(
        steps in prop::collection::vec(step(), 1..60),
        seed: u64,
        options in options(),
        depth in prop_oneof![Just(4096usize), 1..6usize],
    ) {
        let mut oracle = Oracle { memory: initial(), issued: Vec::new(), complete: 0, calls: Vec::new() };
        steps.iter().for_each(|step| oracle.step(step));
        let calls = &oracle.calls;
        let options = options.depth(depth);
        let program = async |fabric: Fabric| run(fabric, calls, options).await;
        let real = threads(RANKS).shared_address_space(true).run(&program).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&real, &oracle.memory, "on threads: {:#?}", calls);
        let job = virtual_time(&machine(), RANKS).seed(seed).jitter(Duration::from_micros(30)).shuffle_ties(true);
        let simulated = job.run(&program).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&simulated.outs, &oracle.memory, "in virtual time: {:#?}", calls);
    }
}
