//! Ranks killed while others wait in each kind of call.

use crate::job::launch;
use checks::killed::Outcome;
use std::{env, time::Instant};

const RANKS: usize = 4;

/// The calls that are repeated until the rank is killed.
const SCENES: [&str; 10] = [
    "recv",
    "broadcast",
    "broadcast-ring",
    "sum",
    "amax-ring",
    "exchange",
    "barrier-all",
    "barrier-row",
    "free-buffers",
    "exit",
];

/// The environment variable for the number of times at which to kill in each scene.
const POINTS: &str = "KILLED_POINTS";

#[test]
fn a_death_during_a_call_is_reported() {
    let points = env::var(POINTS).map_or(2, |points| points.parse().expect("a number"));
    for (turn, scene) in SCENES.into_iter().enumerate() {
        for point in 0..points {
            let (victim, micros) =
                ((turn + point) % RANKS, [500, 20, 5_000, 100, 1_500][(turn + point) % 5] + 37 * point);
            let asked = format!("{scene} {victim} {micros}");
            let begun = Instant::now();
            let outcomes = launch(RANKS, &asked);
            for (rank, outcome) in outcomes.iter().enumerate() {
                let expected = if rank == victim { Outcome::Silent } else { Outcome::Ended("told".to_owned()) };
                assert_eq!(*outcome, expected, "{asked}: rank {rank} after {:?}", begun.elapsed());
            }
        }
    }
}
