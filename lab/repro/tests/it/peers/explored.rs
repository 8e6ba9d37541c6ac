//! The published locks on a network that delivers in any order: small jobs under every order,
//! larger ones at random, and each lock with mutants.

use explore::{
    Explorer, Probe, Stop, Verdict,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Fabric, GroupMemory, ProgramResult, Rank, RemoteAddr};
use repro::peers::{dec::DecLock, shift::ShiftLock};
use rma_lock::{Guard, RmaLock};

const HOME: Rank = Rank::new(0);
/// The number of replies that a rank receives during an acquisition or a release before a path is
/// cut: enough for all its operations and some polls.
const PATIENCE: u32 = 14;
/// The fact that counts writers inside.
const WRITERS: u32 = 0;
/// The fact that counts readers inside.
const READERS: u32 = 1;
/// The fact that counts writes.
const WRITES: u32 = 2;

/// One rank's part: acquires the lock once for each letter of `turns`, shared (`R`) or exclusive
/// (`W`).
async fn turns<L: RmaLock<Options = ()>>(fabric: Fabric, probe: Probe, turns: &'static str) -> ProgramResult<()> {
    let memory = GroupMemory::symmetric(&fabric, L::bytes(&(), fabric.ranks())).await?;
    let lock = L::over(&fabric, memory, HOME, ())?;
    // The protected word is not at the lock's home.
    let shared = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(shared.at(Rank::new(fabric.ranks() as u32 - 1), 0))?;
    for (turn, kind) in turns.chars().enumerate() {
        if kind == 'W' {
            let guard = lock.write().await?;
            probe.step((turn, format!("{guard:?}"), probe.stored()));
            probe.add(WRITERS, 1);
            let before = fabric.get_word(&word).await?;
            assert_eq!(before, probe.add(WRITES, 1), "visibility: a writer missed a write");
            fabric.put_word(&word, before + 1).await?;
            probe.subtract(WRITERS, 1);
            guard.release().await?;
        } else {
            let guard = lock.read().await?;
            probe.step((turn, format!("{guard:?}"), probe.stored()));
            probe.add(READERS, 1);
            let seen = fabric.get_word(&word).await?;
            assert_eq!(seen, probe.get(WRITES), "visibility: a reader missed a write");
            probe.subtract(READERS, 1);
            guard.release().await?;
        }
        probe.step((turn, format!("{lock:?}"), probe.stored()));
    }
    Ok(())
}

/// Returns an explorer with the invariant: a writer excludes all other ranks.
fn explorer(ranks: &[&str]) -> Explorer<'static> {
    Explorer::new(ranks.len()).patience(PATIENCE).leave_together().always("mutual exclusion", |view| {
        view.fact(WRITERS) == 0 || view.fact(WRITERS) == 1 && view.fact(READERS) == 0
    })
}

/// The acquisitions of each rank, and about half of the number of states.
type Case = (&'static [&'static str], u64);

fn exhausts<L: RmaLock<Options = ()>>(mutant: Option<PeerMutant>, cases: &[Case]) {
    for &(ranks, at_least) in cases {
        let report = explorer(ranks).run(|fabric| {
            let (probe, me) = (Probe::of(&fabric), fabric.rank().index());
            turns::<L>(mutant.map_or(fabric.clone(), |mutant| mutated(fabric, mutant)), probe, ranks[me])
        });
        println!("{} {ranks:?}: {report}", L::NAME);
        // A polling rank may poll forever: such paths are cut, all others are explored
        // exhaustively.
        assert!(matches!(report.verdict, Verdict::Exhausted | Verdict::Stopped(Stop::Steps(_))), "{report}");
        assert!(report.contradiction.is_none(), "{report}");
        assert!(report.states >= at_least, "{ranks:?}: {}", report.states);
    }
}

#[test]
fn shift_lock_is_right_in_every_order() {
    exhausts::<ShiftLock>(
        None,
        &[
            (&["W", "W"], 90),
            (&["RW", "W"], 250),
            (&["WW", "WW"], 900),
            (&["RR", "WW"], 900),
            (&["R", "W", "W"], 20_000),
            (&["R", "R", "W"], 25_000),
        ],
    );
}

/// Readers are admitted after two consecutive writers.
#[test]
fn shift_lock_changes_its_mode_in_every_order() {
    exhausts::<ShiftLock>(Some(PeerMutant::Hurried), &[(&["WR", "W", "W"], 50_000)]);
}

#[test]
#[ignore = "long: weekly"]
fn shift_lock_changes_its_mode_in_every_order_of_more_turns() {
    exhausts::<ShiftLock>(Some(PeerMutant::Hurried), &[(&["WW", "WW", "R"], 650_000)]);
}

#[test]
fn dec_lock_is_right_in_every_order() {
    exhausts::<DecLock>(
        None,
        &[
            (&["W", "W"], 90),
            (&["RW", "W"], 260),
            (&["WW", "WW"], 900),
            (&["RR", "WW"], 900),
            (&["R", "W", "W"], 5_000),
            (&["R", "R", "W"], 30_000),
        ],
    );
}

const AT_RANDOM: &[&[&str]] = &[
    &["RWR", "WRW", "RRW", "WWR"],
    &["RRRR", "RRRR", "RRRR", "WRWR"],
    &["RRRR", "WRRR", "RRRR", "RWRR", "RRRW"],
    &["WWWW", "WWWW", "WWWW", "RRRR"],
];

fn passes_at_random<L: RmaLock<Options = ()>>() {
    for ranks in AT_RANDOM {
        let sample = explorer(ranks).sample(1, 150, |fabric| {
            let (probe, me) = (Probe::of(&fabric), fabric.rank().index());
            turns::<L>(fabric, probe, ranks[me])
        });
        println!("{} {ranks:?}: {sample}", L::NAME);
        assert!(sample.failure.is_none(), "{} {ranks:?}: {sample}", L::NAME);
    }
}

#[test]
fn shift_lock_is_right_in_random_orders() {
    passes_at_random::<ShiftLock>();
}

#[test]
fn dec_lock_is_right_in_random_orders() {
    passes_at_random::<DecLock>();
}

/// A mutant of a step, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerMutant {
    /// Releases do not flush the holder's puts.
    NotFlushed,
    /// ShiftLock: the first writer does not wait for the readers that it finds.
    ReadersOverlooked,
    /// ShiftLock: the first writer does not wait for the one that is leaving.
    LeavingWriterOverlooked,
    /// ShiftLock: a reader that finds two writers announced enters after the first.
    SecondWriterOverlooked,
    /// ShiftLock: a reader does not wait.
    WritersOverlooked,
    /// ShiftLock: not a defect, but a successor is notified that it is the 16th writer in a row.
    Hurried,
    /// ShiftLock: the successor of such a writer does not wait for the admitted readers.
    LetInOverlooked,
    /// DecLock: a writer is not counted as one.
    CountedAsReader,
    /// DecLock: every writer's entry claims that the writer found no other one.
    AlwaysAlone,
    /// DecLock: an entry claims to be a reader's.
    EntryReads,
}

/// Offsets of words.
const STATE: u64 = 8;
const GRANT: u64 = 72;
const RING: u64 = 128;
/// Fields of ShiftLock's state.
const SHIFT_READERS: u64 = (1 << 24) - 1;
const SHIFT_WRITER: u64 = 1 << 24;

fn in_lock(addr: RemoteAddr) -> bool {
    addr.region.index & !(1 << 31) == 0
}

impl Mutant for PeerMutant {
    fn flushes(&self, _: Option<Rank>) -> bool {
        *self != PeerMutant::NotFlushed
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        if !in_lock(addr) || addr.offset != STATE {
            return old;
        }
        let writers = old & (3 * SHIFT_WRITER);
        match (self, amo) {
            (PeerMutant::ReadersOverlooked, Amo::Add(SHIFT_WRITER)) => old & !SHIFT_READERS,
            (PeerMutant::LeavingWriterOverlooked, Amo::Add(SHIFT_WRITER)) => old & !(3 * SHIFT_WRITER),
            (PeerMutant::SecondWriterOverlooked, Amo::Add(1)) if writers == 2 * SHIFT_WRITER => old - SHIFT_WRITER,
            (PeerMutant::WritersOverlooked, Amo::Add(1)) => old & !(3 * SHIFT_WRITER),
            _ => old,
        }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match amo {
            // Two or three ranks, so counts have two bits.
            Amo::Add(5) if *self == PeerMutant::CountedAsReader && in_lock(addr) && addr.offset == 0 => Amo::Add(4),
            Amo::Add(add) if *self == PeerMutant::CountedAsReader && in_lock(addr) && add == 16 - 5 => Amo::Add(16 - 4),
            amo => amo,
        }
    }

    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        if !in_lock(addr) || addr.offset < GRANT {
            return Some(bits);
        }
        Some(match self {
            PeerMutant::Hurried | PeerMutant::LetInOverlooked if bits & 3 == 1 => bits & 15 | 15 << 4,
            PeerMutant::LetInOverlooked if bits & 3 == 2 => bits & 12 | 1,
            PeerMutant::AlwaysAlone if bits & 1 == 1 => bits | 2,
            PeerMutant::EntryReads if addr.offset >= RING => bits & !3,
            _ => bits,
        })
    }
}

fn is_found<L: RmaLock<Options = ()>>(mutant: PeerMutant, ranks: &'static [&'static str]) {
    let report = explorer(ranks).state_limit(1_000_000).run(move |fabric| {
        let (probe, me) = (Probe::of(&fabric), fabric.rank().index());
        turns::<L>(mutated(fabric, mutant), probe, ranks[me])
    });
    println!("{} {mutant:?} {ranks:?}: {report}", L::NAME);
    report.expect_violation();
}

#[test]
fn shift_locks_mutants_are_found() {
    is_found::<ShiftLock>(PeerMutant::NotFlushed, &["R", "W"]);
    is_found::<ShiftLock>(PeerMutant::ReadersOverlooked, &["R", "W"]);
    is_found::<ShiftLock>(PeerMutant::WritersOverlooked, &["R", "W"]);
    is_found::<ShiftLock>(PeerMutant::LeavingWriterOverlooked, &["R", "W", "W"]);
    is_found::<ShiftLock>(PeerMutant::SecondWriterOverlooked, &["R", "W", "W"]);
    is_found::<ShiftLock>(PeerMutant::LetInOverlooked, &["WR", "W", "W"]);
}

#[test]
fn dec_locks_mutants_are_found() {
    is_found::<DecLock>(PeerMutant::NotFlushed, &["R", "W"]);
    is_found::<DecLock>(PeerMutant::CountedAsReader, &["R", "W"]);
    is_found::<DecLock>(PeerMutant::EntryReads, &["R", "W", "W"]);
    is_found::<DecLock>(PeerMutant::AlwaysAlone, &["R", "W", "W"]);
}
