//! Mixes of calls that stress a library (`tests/own/mixes.c`), as jobs of 4 and 8 ranks.

use crate::tools::{Linked, compiled, job};
use std::{
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// The cases that always run: name, and number of rounds.
const QUICK: [(&str, u32); 4] = [("few", 8), ("points", 4), ("combines", 8), ("random", 8)];

/// More broadcasts than a root may hold back: their arrival must not depend on its next call.
const MANY: [(&str, u32); 1] = [("many", 8)];

/// The number of runs of the loop.
const LOOPED: u32 = 50;

/// Runs a case as `ranks` ranks, with a FIFO on which they wait outside the fabric.
fn runs_well(program: &Path, ranks: usize, name: &str, rounds: u32, seed: u32) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let fifo = program.with_file_name(format!("fifo-{}", NEXT.fetch_add(1, Relaxed)));
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is installed");
    assert!(made.success(), "{}", fifo.display());
    let ended = job(ranks, program, &[name, &rounds.to_string(), &seed.to_string(), &fifo.to_string_lossy()]);
    assert!(ended.code() == Some(0) && ended.out == "mixes: well\n", "{name}, {ranks} ranks, seed {seed}: {ended}");
    fs::remove_file(fifo).expect("the FIFO exists");
}

fn run_all(cases: &[(&str, u32)], seeds: u32) {
    let Some(program) = compiled(&["tests/own/mixes.c"], Linked::Shared) else { return };
    for seed in 1..=seeds {
        for &(name, rounds) in cases {
            for ranks in [4, 8] {
                runs_well(&program, ranks, name, rounds, seed);
            }
        }
    }
}

pub(crate) fn late_receivers_and_roots_elsewhere() {
    run_all(&QUICK, 1);
}

pub(crate) fn many_broadcasts_complete_without_their_root() {
    run_all(&MANY, 1);
}

/// A heavier check, selected by `--ignored`.
pub(crate) fn late_receivers_and_roots_elsewhere_in_a_loop() {
    run_all(&QUICK, LOOPED);
    run_all(&MANY, LOOPED);
}
