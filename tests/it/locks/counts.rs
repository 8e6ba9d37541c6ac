//! Operation counts as an oracle for the locks with queues: the operations that each path posts, by
//! kind, at the home and at peers.
//!
//! [`scenarios`] names each operation by its step, next to the operations of the algorithm as
//! printed; the counters of an observed fabric must agree exactly, in virtual time for all paths
//! and over threads for those in which no rank waits. Mutants that change the counts show that the
//! counts are significant.

use super::{
    run::{simulate, spawn},
    scenarios::{Scenario, rewrite, scenarios},
    tally::{Tally, Target},
};
use crate::page::WRITE;
use checks::lock::mutants::QueuedMutant;
use onesided::lock::locks::LockKind;

const COMMAND: &str = "CONFORMANCE_WRITE=1 cargo test --test it locks";

#[test]
fn each_path_posts_what_its_steps_say_in_virtual_time() {
    let scenarios = scenarios();
    let (mut wrong, mut text) = (Vec::new(), String::new());
    for scenario in &scenarios {
        match simulate(scenario, None) {
            Ok(outcome) => {
                text += &outcome.differences();
                wrong.extend(outcome.counted_otherwise());
            }
            Err(error) => text += &format!("{}, {}: {error}\n", scenario.lock, scenario.name),
        }
    }
    if !wrong.is_empty() && std::env::var_os(WRITE).is_some() {
        return rewrite(&wrong);
    }
    assert!(text.is_empty(), "tests/golden/lock_counts.txt says something else; `{COMMAND}` rewrites it:\n{text}");
}

#[test]
fn paths_without_a_wait_post_the_same_over_threads_but_no_flush() {
    let (scenarios, mut calm) = (scenarios(), 0);
    for scenario in scenarios.iter().filter(|scenario| scenario.calm) {
        let found = spawn(scenario).unwrap_or_else(|error| panic!("{}: {error}", scenario.name)).differences();
        assert!(found.is_empty(), "\n{found}");
        calm += 1;
    }
    assert!(calm > 0);
}

#[test]
fn the_wrapper_itself_does_not_matter() {
    for scenario in scenarios() {
        let outcome = simulate(&scenario, Some(QueuedMutant::Nothing)).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.differences().is_empty(), "{}", outcome.differences());
    }
}

/// Checks mutants that only the counts reveal, in scenarios of the reader-preference lock.
#[test]
fn mutants_change_the_counts() {
    const ALONE: &str = "exclusive, nobody about";
    const NOTICED: [(QueuedMutant, &str); 7] = [
        (QueuedMutant::HeadNotFlushed, ALONE),
        (QueuedMutant::DataNotFlushed, ALONE),
        (QueuedMutant::HeadClearedUnflushed, ALONE),
        (QueuedMutant::SweepAsPrinted, ALONE),
        (QueuedMutant::FlagsAsPrinted, ALONE),
        (QueuedMutant::AbandonedTakenForWoken, "reader behind a writer gives up"),
        (QueuedMutant::NoSecondLook, "reader counted, writer sweeps, reader looks again"),
    ];
    let scenarios = scenarios();
    for (mutant, name) in NOTICED {
        let flat = |scenario: &&Scenario| scenario.lock == LockKind::ReaderPreference && scenario.name == name;
        let scenario = scenarios.iter().find(flat).unwrap_or_else(|| panic!("no scene {name:?}"));
        let outcome = simulate(scenario, Some(mutant)).unwrap_or_else(|error| panic!("{mutant:?}: {error}"));
        let found = outcome.differences();
        println!("{mutant:?}: {found}");
        assert!(!found.is_empty(), "{mutant:?}: the counts are those of the lock as it is");
    }
}

#[test]
fn a_path_is_as_printed_or_says_why_not() {
    for scenario in scenarios() {
        for line in &scenario.lines {
            let tally = Tally::of_steps(&line.steps, false);
            let counted = (tally.at(Target::Home), tally.at(Target::Peer));
            let same = line.printed.is_none_or(|printed| printed == counted);
            let (name, who) = (&scenario.name, &line.who);
            assert_eq!(same, line.because.is_empty(), "{name}, {who}: {counted:?}, printed {:?}", line.printed);
        }
    }
}

#[test]
fn each_rank_and_phase_has_one_line() {
    let scenarios = scenarios();
    assert_eq!(scenarios.len(), 74, "scenes");
    for scenario in scenarios {
        for (at, line) in scenario.lines.iter().enumerate() {
            let when = (line.phase, line.rank);
            assert!((line.rank as usize) < scenario.ranks, "{}, {when:?}", scenario.name);
            let again = scenario.lines[at + 1..].iter().any(|other| (other.phase, other.rank) == when);
            assert!(!again, "{}, {when:?}: two lines", scenario.name);
        }
    }
}
