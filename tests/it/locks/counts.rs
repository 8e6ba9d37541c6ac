//! Operation counts as an oracle for the locks with queues: the operations that each path posts, by
//! kind, at the home and at peers.
//!
//! [`scenes`] names each operation by its step, next to the operations of the algorithm as printed;
//! the counters of an observed fabric must agree exactly, in virtual time for all paths and over
//! threads for those in which no rank waits. Mutations that change the counts show that the counts
//! are significant.

use super::{
    play::{simulate, spawn},
    scenes::{Scene, rewrite, scenes},
    tally::{Tally, Target},
};
use crate::page::WRITE;
use checks::lock::mutation::QueuedMistake;
use onesided::lock::locks::LockKind;

const COMMAND: &str = "CONFORMANCE_WRITE=1 cargo test --test it locks";

#[test]
fn each_path_posts_what_its_steps_say_in_virtual_time() {
    let scenes = scenes();
    let (mut wrong, mut text) = (Vec::new(), String::new());
    for scene in &scenes {
        match simulate(scene, None) {
            Ok(played) => {
                text += &played.differences();
                wrong.extend(played.counted_otherwise());
            }
            Err(error) => text += &format!("{}, {}: {error}\n", scene.lock, scene.name),
        }
    }
    if !wrong.is_empty() && std::env::var_os(WRITE).is_some() {
        return rewrite(&wrong);
    }
    assert!(text.is_empty(), "tests/golden/lock_counts.txt says something else; `{COMMAND}` rewrites it:\n{text}");
}

#[test]
fn paths_without_a_wait_post_the_same_over_threads_but_no_flush() {
    let (scenes, mut calm) = (scenes(), 0);
    for scene in scenes.iter().filter(|scene| scene.calm) {
        let found = spawn(scene).unwrap_or_else(|error| panic!("{}: {error}", scene.name)).differences();
        assert!(found.is_empty(), "\n{found}");
        calm += 1;
    }
    assert!(calm > 0);
}

#[test]
fn the_wrapper_itself_does_not_matter() {
    for scene in scenes() {
        let played = simulate(&scene, Some(QueuedMistake::Nothing)).unwrap_or_else(|error| panic!("{error}"));
        assert!(played.differences().is_empty(), "{}", played.differences());
    }
}

/// Checks mutations that only the counts reveal, in scenes of the reader-preference lock.
#[test]
fn mistakes_change_the_counts() {
    const ALONE: &str = "exclusive, nobody about";
    const NOTICED: [(QueuedMistake, &str); 7] = [
        (QueuedMistake::HeadNotFlushed, ALONE),
        (QueuedMistake::DataNotFlushed, ALONE),
        (QueuedMistake::HeadClearedUnflushed, ALONE),
        (QueuedMistake::SweepAsPrinted, ALONE),
        (QueuedMistake::FlagsAsPrinted, ALONE),
        (QueuedMistake::AbandonedTakenForWoken, "reader behind a writer gives up"),
        (QueuedMistake::NoSecondLook, "reader counted, writer sweeps, reader looks again"),
    ];
    let scenes = scenes();
    for (mistake, name) in NOTICED {
        let flat = |scene: &&Scene| scene.lock == LockKind::ReaderPreference && scene.name == name;
        let scene = scenes.iter().find(flat).unwrap_or_else(|| panic!("no scene {name:?}"));
        let played = simulate(scene, Some(mistake)).unwrap_or_else(|error| panic!("{mistake:?}: {error}"));
        let found = played.differences();
        println!("{mistake:?}: {found}");
        assert!(!found.is_empty(), "{mistake:?}: the counts are those of the lock as it is");
    }
}

#[test]
fn a_path_is_as_printed_or_says_why_not() {
    for scene in scenes() {
        for line in &scene.lines {
            let tally = Tally::of_steps(&line.steps, false);
            let counted = (tally.at(Target::Home), tally.at(Target::Peer));
            let same = line.printed.is_none_or(|printed| printed == counted);
            let (name, who) = (&scene.name, &line.who);
            assert_eq!(same, line.because.is_empty(), "{name}, {who}: {counted:?}, printed {:?}", line.printed);
        }
    }
}

#[test]
fn each_rank_and_phase_has_one_line() {
    let scenes = scenes();
    assert_eq!(scenes.len(), 74, "scenes");
    for scene in scenes {
        for (at, line) in scene.lines.iter().enumerate() {
            let when = (line.phase, line.rank);
            assert!((line.rank as usize) < scene.ranks, "{}, {when:?}", scene.name);
            let again = scene.lines[at + 1..].iter().any(|other| (other.phase, other.rank) == when);
            assert!(!again, "{}, {when:?}: two lines", scene.name);
        }
    }
}
