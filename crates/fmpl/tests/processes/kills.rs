//! Ranks killed while others wait for their messages, for their receives, and in collectives.

use crate::job::launch;
use checks::killed::Outcome;
use std::{env, time::Instant};

const RANKS: usize = 3;

/// The operations during which the rank is killed; and whether every other rank eventually waits
/// for it.
const SCENES: [(&str, bool); 13] = [
    ("sends", true),
    ("sends-any-index", true),
    ("sends-any-source", false),
    ("receives", true),
    ("receives-isend", true),
    ("receives-any", true),
    ("fetches", true),
    ("fetches-late", true),
    ("finalize", true),
    ("barrier", true),
    ("broadcast", true),
    ("reduce", true),
    ("allreduce", true),
];

/// Set to a number to kill at that number of calls of each scene, and at that number of times.
const POINTS: &str = "KILLED_POINTS";

/// Runs a job in which rank `victim` dies; checks that the other ranks report it.
fn others_are_told((scene, all): (&str, bool), victim: usize, when: &str, number: usize) {
    let asked = format!("{scene} {victim} {when} {number}");
    let begun = Instant::now();
    let outcomes = launch(RANKS, &asked);
    let (told, stopped) = (Outcome::Ended("told".to_owned()), Outcome::Ended("stopped".to_owned()));
    for (rank, outcome) in outcomes.iter().enumerate() {
        let expected = match rank == victim {
            true => *outcome == Outcome::Silent,
            false => *outcome == told || !all && *outcome == stopped,
        };
        assert!(expected, "{asked}: rank {rank} ended with {outcome:?} after {:?}", begun.elapsed());
    }
    assert!(outcomes.contains(&told), "{asked}: {outcomes:?}");
}

fn points(few: usize) -> usize {
    env::var(POINTS).map_or(few, |points| points.parse().expect("a number"))
}

/// Kills before and after the calls of the fabric that the victim makes first, in turn.
#[test]
fn a_death_in_a_call_is_reported_to_others() {
    let points = points(3);
    for (turn, scene) in SCENES.into_iter().enumerate().filter(|(_, (scene, _))| *scene != "finalize") {
        for point in 0..points {
            // Unless many are asked for, others for each scene.
            let number = if points > 3 { point } else { 7 * point + turn };
            others_are_told(scene, (turn + point) % RANKS, "call", number);
        }
    }
}

/// Kills at some time, regardless of the state of the job.
#[test]
fn a_death_at_a_random_time_is_reported_to_others() {
    let points = points(2);
    for (turn, scene) in SCENES.into_iter().enumerate() {
        for point in 0..points {
            let micros = [500, 20, 5_000, 100, 1_500][(turn + point) % 5] + 37 * (point % 50);
            others_are_told(scene, (turn + point / 5) % RANKS, "time", micros);
        }
    }
}
