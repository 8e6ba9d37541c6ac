//! Steps done wrong: the search finds what they break, and the code does not behave like a model that has them. Nor does a model without them follow code
//! that has them.

use super::{Same, tested, traces::follow};
use checks::lock::{mutation::QueuedMistake, program, queued_mutations};
use twin::{Lock, Mistake, Mistake::*, Model, Role, Role::*, Search, Verdict};

/// A mistake, and a job that shows it.
type Shown = (Lock, Mistake, &'static [Role], usize);

const SHOWN: &[Shown] = &[
    (Lock::Flat, NoSecondLook, &[Read, Write], 1),
    (Lock::Flat, LateInitialisation, &[Write, Write], 2),
    (Lock::Flat, HeadNotFlushed, &[Read, Write], 1),
    (Lock::Flat, ComparisonIgnored, &[Read, Write], 1),
    (Lock::Flat, RememberedNext, &[Read, Write, Write], 2),
    (Lock::Flat, LeaveMergedWithInterest, &[Read, Write, Write], 1),
    (Lock::Flat, DataNotFlushed, &[Read, Write], 1),
    (Lock::Flat, StoreForSubtract, &[Read, Write], 1),
    (Lock::Flat, NotUncounted, &[Read, Write], 1),
    (Lock::Flat, NoSweep, &[Read, Write], 1),
    (Lock::Flat, NotWoken, &[Read, Write], 1),
    (Lock::Flat, TailIgnored, &[Write, Write], 1),
    (Lock::Flat, MarkIgnored, &[Write, Write], 1),
    (Lock::Flat, NoMark, &[Write, Write], 1),
    (Lock::Packed, NoSecondLook, &[Read, Write], 1),
    (Lock::Packed, LateInitialisation, &[Write, Write], 2),
    (Lock::Packed, HeadNotNamed, &[Read, Write], 1),
    (Lock::Packed, HeadKept, &[Write, Write], 1),
    (Lock::Packed, ShortcutIgnored, &[Read, Write], 1),
    (Lock::Packed, HandOverIgnored, &[Read, Write, Write], 1),
    (Lock::Packed, ComparisonIgnored, &[Read, Read, Write], 1),
    (Lock::Packed, LeaveMergedWithInterest, &[Read, Write, Write], 1),
    (Lock::Packed, DataNotFlushed, &[Read, Write], 1),
    (Lock::Packed, StoreForSubtract, &[Read, Write], 1),
    (Lock::Packed, NotUncounted, &[Read, Write], 1),
    (Lock::Packed, NoSweep, &[Read, Write], 1),
    (Lock::Packed, NotWoken, &[Read, Write], 1),
    (Lock::Packed, TailIgnored, &[Write, Write], 1),
    (Lock::Packed, MarkIgnored, &[Write, Write], 1),
    (Lock::Packed, NoMark, &[Write, Write], 1),
    (Lock::WritersFirst, NoSecondLook, &[Read, Write], 1),
    (Lock::WritersFirst, LateInitialisation, &[Write, Write], 2),
    (Lock::WritersFirst, HeadNotNamed, &[Read, Write], 1),
    (Lock::WritersFirst, ShortcutIgnored, &[Read, Write], 1),
    (Lock::WritersFirst, ComparisonIgnored, &[Read, Read, Write], 1),
    (Lock::WritersFirst, StaysCounted, &[Read, Write], 1),
    (Lock::WritersFirst, NobodyTold, &[Read, Write], 1),
    (Lock::WritersFirst, ToldTooLate, &[Read, Read, Write, Write], 1),
    (Lock::WritersFirst, OneComparison, &[Read, Read, Write], 2),
    (Lock::WritersFirst, DataNotFlushed, &[Read, Write], 1),
    (Lock::WritersFirst, StoreForSubtract, &[Read, Read, Write], 1),
    (Lock::WritersFirst, NotUncounted, &[Read, Write], 1),
    (Lock::WritersFirst, NoSweep, &[Read, Write], 1),
    (Lock::WritersFirst, NotWoken, &[Read, Write], 1),
    (Lock::WritersFirst, TailIgnored, &[Write, Write], 1),
    (Lock::WritersFirst, MarkIgnored, &[Write, Write], 1),
    (Lock::WritersFirst, NoMark, &[Write, Write], 1),
    (Lock::Fair, ReadersIgnored, &[Read, Read, Write], 1),
    (Lock::Fair, NotCounted, &[Read, Write], 1),
    (Lock::Fair, NotSaid, &[Read, Write], 1),
    (Lock::Fair, NotTakenBack, &[Read, Write], 1),
    (Lock::Fair, NotInside, &[Read, Read], 1),
    (Lock::Fair, InsideIgnored, &[Read, Read], 1),
    (Lock::Fair, BlockedTakenForInside, &[Read, Write], 2),
    (Lock::Fair, LateInitialisation, &[Write, Write], 2),
    (Lock::Fair, DataNotFlushed, &[Read, Write], 1),
    (Lock::Fair, StoreForSubtract, &[Read, Read, Write], 1),
    (Lock::Fair, NotUncounted, &[Read, Write], 1),
    (Lock::Fair, NotWoken, &[Read, Write], 1),
    (Lock::Fair, TailIgnored, &[Write, Write], 1),
    (Lock::Fair, MarkIgnored, &[Write, Write], 1),
    (Lock::Fair, MarkIgnored, &[Read, Write], 1),
    (Lock::Fair, NoMark, &[Write, Write], 1),
    (Lock::Fair, NoMark, &[Read, Write], 1),
    (Lock::Aggregated, NoSecondLook, &[Read, Read], 1),
    (Lock::Aggregated, NoSweep, &[Read, Read], 1),
    (Lock::Aggregated, NotWoken, &[Read, Read], 1),
    (Lock::Aggregated, NotUncounted, &[Read, Read], 1),
    (Lock::Aggregated, OthersIgnored, &[Read, Read, Write], 1),
    (Lock::Aggregated, LetGoIgnored, &[Read, Read, Write], 1),
    (Lock::Aggregated, DataNotFlushed, &[Read, Write], 1),
];

fn same((lock, _, roles, rounds): Shown) -> Same {
    Same { lock, roles, nodes: &[0, 0, 1, 1][..roles.len()], rounds }
}

fn model(shown: Shown) -> Model {
    same(shown).model().mistaken(shown.1)
}

#[test]
fn the_search_finds_them() {
    for shown in SHOWN {
        let model = model(*shown);
        let report = Search::new(&model).limit(1_000_000).run();
        let Verdict::Broken(wrong, path) = &report.verdict else { panic!("{shown:?} passed: {report}") };
        assert!(!matches!(wrong, twin::Violation::NoRoom(_)), "{shown:?}: {report}");
        println!("{shown:?}: {wrong} after {} things happened, {} states", path.len(), report.states);
    }
}

/// Without the moves that happen at once, too.
#[test]
fn the_search_of_every_move_finds_them() {
    for shown in SHOWN {
        let model = model(*shown);
        let report = Search::new(&model).apart().limit(1_000_000).run();
        assert!(matches!(report.verdict, Verdict::Broken(..)), "{shown:?} passed: {report}");
    }
}

#[test]
fn the_code_does_not_fit_them() {
    const RUNS: u64 = 2_000;
    // A model that lets more happen is fit by all that the right one is.
    let lets_more_happen = |mistake| matches!(mistake, HeadNotFlushed | DataNotFlushed);
    for shown in SHOWN.iter().filter(|shown| !lets_more_happen(shown.1)) {
        let (same, model) = (same(*shown), model(*shown));
        let refused = (0..RUNS).find_map(|seed| follow(&same, &model, None, seed).err());
        let refused = refused.unwrap_or_else(|| panic!("{RUNS} runs of the code fit {shown:?}"));
        println!("{shown:?}: {refused}");
    }
}

/// The locks' own mutations, as far as nobody gives up in their jobs.
#[test]
fn wrong_code_does_not_fit_the_model() {
    const RUNS: u64 = 3_000;
    let (mut count, mut fit) = (0, Vec::new());
    for mutation in queued_mutations() {
        let plain = mutation.roles.iter().map(|role| match role {
            program::Role::Read => Some(Read),
            program::Role::Write => Some(Write),
            _ => None,
        });
        let Some(roles) = plain.collect::<Option<Vec<Role>>>() else { continue };
        let lock = Lock::ALL.into_iter().find(|lock| tested(*lock) == mutation.lock).expect("a model");
        let nodes = &[0, 0, 1, 1][..roles.len()];
        let same = Same { lock, roles: roles.leak(), nodes, rounds: mutation.rounds };
        let model = same.model();
        let refused = (0..RUNS).find_map(|seed| {
            // That the code itself finds something wrong says nothing of the model.
            let what = follow(&same, &model, Some(mutation.mistake), seed).err()?;
            what.contains("where the model has").then_some(what)
        });
        match refused {
            Some(refused) => println!("{mutation:?}: {refused}"),
            None => fit.push((lock, mutation.mistake)),
        }
        count += 1;
    }
    assert!(count > 50, "{count} mutations");
    // Shows in one run of very many. That the model with this mistake is broken is found above.
    assert_eq!(fit, [(Lock::Flat, QueuedMistake::RememberedNext)]);
}
