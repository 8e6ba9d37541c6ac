//! Mutated steps: the search finds the violations that they cause, the code does not behave like a
//! mutated model, and the correct model cannot follow mutated code.

use super::{Same, tested, traces::follow};
use checks::lock::{mutants::QueuedMutant, program, queued_mutants};
use twin::{Lock, Model, Mutant, Mutant::*, Role, Role::*, Search, Verdict};

const BY_READERS: &[Lock] = &[Lock::Flat, Lock::Packed];
const COUNTED: &[Lock] = &[Lock::Flat, Lock::Packed, Lock::WritersFirst];
const NAMING_HEADS: &[Lock] = &[Lock::Packed, Lock::WritersFirst];
const BARGING: &[Lock] = &[Lock::Barging, Lock::Passing];
const QUEUED: &[Lock] = &[Lock::Flat, Lock::Packed, Lock::WritersFirst, Lock::Fair];

/// Mutants, the locks that have the step, and a job that shows each case.
const MUTANTS: &[(Mutant, &[Lock], &[Role], usize)] = &[
    (NoSecondLook, COUNTED, &[Read, Write], 1),
    (LateInitialisation, QUEUED, &[Write, Write], 2),
    (HeadNotFlushed, &[Lock::Flat], &[Read, Write], 1),
    (ComparisonIgnored, &[Lock::Flat], &[Read, Write], 1),
    (RememberedNext, &[Lock::Flat], &[Read, Write, Write], 2),
    (LeaveMergedWithInterest, BY_READERS, &[Read, Write, Write], 1),
    (DataNotFlushed, &Lock::ALL, &[Read, Write], 1),
    (StoreForSubtract, BY_READERS, &[Read, Write], 1),
    (NotUncounted, QUEUED, &[Read, Write], 1),
    (NoSweep, COUNTED, &[Read, Write], 1),
    (NotWoken, QUEUED, &[Read, Write], 1),
    (TailIgnored, QUEUED, &[Write, Write], 1),
    (MarkIgnored, QUEUED, &[Write, Write], 1),
    (NoMark, QUEUED, &[Write, Write], 1),
    (HeadNotNamed, NAMING_HEADS, &[Read, Write], 1),
    (HeadKept, &[Lock::Packed], &[Write, Write], 1),
    (ShortcutIgnored, NAMING_HEADS, &[Read, Write], 1),
    (HandOverIgnored, &[Lock::Packed], &[Read, Write, Write], 1),
    (ComparisonIgnored, NAMING_HEADS, &[Read, Read, Write], 1),
    (StaysCounted, &[Lock::WritersFirst], &[Read, Write], 1),
    (NobodyTold, &[Lock::WritersFirst], &[Read, Write], 1),
    (ToldTooLate, &[Lock::WritersFirst], &[Read, Read, Write, Write], 1),
    (OneComparison, &[Lock::WritersFirst], &[Read, Read, Write], 2),
    (StoreForSubtract, &[Lock::WritersFirst, Lock::Fair], &[Read, Read, Write], 1),
    (ReadersIgnored, &[Lock::Fair], &[Read, Read, Write], 1),
    (NotCounted, &[Lock::Fair], &[Read, Write], 1),
    (NotSaid, &[Lock::Fair], &[Read, Write], 1),
    (NotTakenBack, &[Lock::Fair], &[Read, Write], 1),
    (NotInside, &[Lock::Fair], &[Read, Read], 1),
    (InsideIgnored, &[Lock::Fair], &[Read, Read], 1),
    (BlockedTakenForInside, &[Lock::Fair], &[Read, Write], 2),
    (MarkIgnored, &[Lock::Fair], &[Read, Write], 1),
    (NoMark, &[Lock::Fair], &[Read, Write], 1),
    (NoSecondLook, &[Lock::Aggregated], &[Read, Read], 1),
    (NoSweep, &[Lock::Aggregated], &[Read, Read], 1),
    (NotWoken, &[Lock::Aggregated], &[Read, Read], 1),
    (NotUncounted, &[Lock::Aggregated], &[Read, Read], 1),
    (OthersIgnored, &[Lock::Aggregated], &[Read, Read, Write], 1),
    (LetGoIgnored, &[Lock::Aggregated], &[Read, Read, Write], 1),
    (NoSecondLook, BARGING, &[Read, Write], 1),
    (StoreForSubtract, BARGING, &[Read, Write], 1),
    (NotUncounted, BARGING, &[Read, Write], 1),
    (NoSweep, BARGING, &[Read, Write], 1),
    (NotWoken, BARGING, &[Write, Write], 1),
    (TailIgnored, BARGING, &[Write, Write, Write], 1),
    (MarkIgnored, BARGING, &[Write, Write, Write], 1),
    (NoMark, BARGING, &[Write, Write, Write], 1),
    (ShortcutIgnored, BARGING, &[Write, Write], 1),
    (HandOverIgnored, BARGING, &[Read, Write], 1),
    (ComparisonIgnored, BARGING, &[Read, Read, Write], 1),
    (HeadNotNamed, BARGING, &[Write, Write], 1),
    (NoLastLook, &[Lock::Passing], &[Write, Write, Write], 2),
    (NoDowngrade, BARGING, &[Read, Read, Write, Write], 1),
];

/// A mutant of a lock, and a job that shows it.
pub(super) type Shown = (Lock, Mutant, &'static [Role], usize);

pub(super) fn shown() -> impl Iterator<Item = Shown> {
    MUTANTS
        .iter()
        .flat_map(|&(mutant, locks, roles, rounds)| locks.iter().map(move |&lock| (lock, mutant, roles, rounds)))
}

pub(super) fn same((lock, _, roles, rounds): Shown) -> Same {
    Same { lock, roles, nodes: &[0, 0, 1, 1][..roles.len()], rounds }
}

fn model(shown: Shown) -> Model {
    same(shown).model().mutated(shown.1)
}

/// Returns whether every run that fits the correct model also fits one with `mutant`.
pub(super) fn lets_more_happen(mutant: Mutant) -> bool {
    matches!(mutant, HeadNotFlushed | DataNotFlushed)
}

#[test]
fn the_search_finds_them() {
    for shown in shown() {
        let model = model(shown);
        let report = Search::new(&model).limit(1_000_000).run();
        let Verdict::Broken(wrong, path) = &report.verdict else { panic!("{shown:?} passed: {report}") };
        assert!(!matches!(wrong, twin::Violation::NoRoom(_)), "{shown:?}: {report}");
        println!("{shown:?}: {wrong} after {} things happened, {} states", path.len(), report.states);
    }
}

/// Also without immediate moves.
#[test]
fn the_search_of_every_move_finds_them() {
    for shown in shown() {
        let model = model(shown);
        let report = Search::new(&model).apart().limit(1_000_000).run();
        assert!(matches!(report.verdict, Verdict::Broken(..)), "{shown:?} passed: {report}");
    }
}

#[test]
fn the_code_does_not_fit_them() {
    const RUNS: u64 = 2_000;
    for shown in shown().filter(|shown| !lets_more_happen(shown.1)) {
        let (same, model) = (same(shown), model(shown));
        let refused = (0..RUNS).find_map(|seed| follow(&same, &model, None, seed).err());
        let refused = refused.unwrap_or_else(|| panic!("{RUNS} runs of the code fit {shown:?}"));
        println!("{shown:?}: {refused}");
    }
}

/// The locks' own mutants, except those whose jobs give up.
#[test]
fn wrong_code_does_not_fit_the_model() {
    const RUNS: u64 = 3_000;
    let (mut count, mut fit) = (0, Vec::new());
    for case in queued_mutants() {
        let plain = case.roles.iter().map(|role| match role {
            program::Role::Read => Some(Read),
            program::Role::Write => Some(Write),
            _ => None,
        });
        let Some(roles) = plain.collect::<Option<Vec<Role>>>() else { continue };
        let lock = Lock::ALL.into_iter().find(|lock| tested(*lock) == case.lock).expect("a model");
        let nodes = &[0, 0, 1, 1][..roles.len()];
        let same = Same { lock, roles: roles.leak(), nodes, rounds: case.rounds };
        let model = same.model();
        let refused = (0..RUNS).find_map(|seed| {
            // An error reported by the code itself proves nothing about the model.
            let what = follow(&same, &model, Some(case.mutant), seed).err()?;
            what.contains("where the model has").then_some(what)
        });
        match refused {
            Some(refused) => println!("{case:?}: {refused}"),
            None => fit.push((lock, case.mutant)),
        }
        count += 1;
    }
    assert!(count > 50, "{count} mutants");
    // It shows in only one of very many runs. The search above finds that the model with this
    // mutant is broken.
    assert_eq!(fit, [(Lock::Flat, QueuedMutant::RememberedNext)]);
}
