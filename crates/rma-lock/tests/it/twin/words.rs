//! The shared words hold exactly the same combinations of values in the code, under every delivery
//! order, as in the model.

use super::Same;
use std::{cell::RefCell, collections::BTreeSet, rc::Rc};
use twin::{Lock, Mutant, Role, Role::*, Search, Word};

type Combinations = BTreeSet<[u64; 8]>;

fn of_code(same: &Same) -> Combinations {
    let all = Rc::new(RefCell::new(Combinations::new()));
    let (noted, which) = (all.clone(), *same);
    let explorer = same.explorer().always("noted", move |view| {
        let mut words = [0; 8];
        for (addr, value) in view.words() {
            match which.word(addr) {
                Some(Word::Home(word)) if addr.rank.number() == 0 => words[word as usize] = value,
                Some(Word::Level { node, word }) => words[4 + 2 * node as usize + word as usize] = value,
                _ => {}
            }
        }
        noted.borrow_mut().insert(words);
        true
    });
    let report = explorer.run(same.program(None));
    report.expect_exhausted();
    all.take()
}

fn of_model(same: &Same, mutant: Option<Mutant>) -> Combinations {
    let mut all = Combinations::new();
    let model = same.model();
    let model = mutant.into_iter().fold(model, twin::Model::mutated);
    Search::new(&model).apart().whole().look(|state| _ = all.insert(state.shared())).run();
    all
}

const SMALL: [(&[Role], &[u8], usize); 7] = [
    (&[Read, Write], &[0, 0], 2),
    (&[Write, Write], &[0, 0], 2),
    (&[Read, Read], &[0, 0], 2),
    (&[Read, Read, Write], &[0, 0, 1], 1),
    (&[Read, Write, Write], &[0, 0, 1], 1),
    (&[Write, Write, Write], &[0, 0, 1], 1),
    (&[Read, Read, Read], &[0, 0, 0], 1),
];

/// The number of jobs that every test run compares: those of two ranks, and one of three.
const FEW: usize = 4;

#[test]
fn hold_the_same_values() {
    compare(&SMALL[..FEW]);
}

#[test]
#[ignore = "long: weekly"]
fn hold_the_same_values_in_larger_jobs() {
    compare(&SMALL[FEW..]);
}

fn compare(jobs: &[(&'static [Role], &'static [u8], usize)]) {
    for (lock, &(roles, nodes, rounds)) in
        Lock::ALL.into_iter().flat_map(|lock| jobs.iter().map(move |job| (lock, job)))
    {
        let same = Same { lock, roles, nodes, rounds };
        let (code, model) = (of_code(&same), of_model(&same, None));
        let [too_few, too_many] = [&code - &model, &model - &code];
        let first = |words: &Combinations| words.first().map(|words| format!("{words:x?}"));
        assert!(
            code == model,
            "{same:?}: {} that the model lacks, as {:?}; {} that the code lacks, as {:?}",
            too_few.len(),
            first(&too_few),
            too_many.len(),
            first(&too_many)
        );
        println!("{same:?}: {} combinations", code.len());
    }
}

/// One additional or omitted step shows in the words.
#[test]
fn a_mutant_shows() {
    let same = Same { lock: Lock::Flat, roles: &[Read, Write], nodes: &[0, 0], rounds: 2 };
    let code = of_code(&same);
    for mutant in [Mutant::NoSweep, Mutant::NotUncounted, Mutant::ComparisonIgnored, Mutant::HeadNotFlushed] {
        assert_ne!(code, of_model(&same, Some(mutant)), "{mutant:?}");
    }
}
