//! Every run of the code is a run of the model: runs are drawn at random and followed access by
//! access.

use super::Same;
use checks::lock::mutants::QueuedMutant;
use explore::Access;
use std::ops::Range;
use twin::{Lock, Model, Replay, Role, Role::*};

/// Follows the run of `same` from `seed` in `model`. Returns the number of accesses, or a
/// description of the mismatch.
pub(super) fn follow(same: &Same, model: &Model, mutant: Option<QueuedMutant>, seed: u64) -> Result<usize, String> {
    let (effects, wrong) = same.explorer().effects(seed, same.program(mutant));
    let mut replay = Replay::new(model);
    for (number, effect) in effects.iter().enumerate() {
        let Some(word) = same.word(effect.at) else { continue };
        let seen = match effect.access {
            Access::Atomic(amo) => twin::Access::Atomic(amo),
            Access::Get => twin::Access::Get,
            Access::Put => twin::Access::Put,
            Access::Load => twin::Access::Load,
            Access::Store => twin::Access::Store,
            Access::Watch => twin::Access::Watch,
        };
        let did = replay.see(effect.by.index(), word, seen, effect.bits);
        did.map_err(|refused| format!("seed {seed}, access {number}: {refused}"))?;
    }
    if let Some(wrong) = wrong {
        if wrong.starts_with("deadlock") && replay.can_continue() {
            return Err(format!("seed {seed}: {wrong}, where the model has more to do"));
        }
        return Err(format!("seed {seed}: {wrong}"));
    }
    replay.end().map_err(|wrong| format!("seed {seed}: {wrong}"))?;
    Ok(effects.len())
}

const fn same(lock: Lock, roles: &'static [Role], nodes: &'static [u8], rounds: usize) -> Same {
    Same { lock, roles, nodes, rounds }
}

/// Returns the jobs to follow for a lock.
fn jobs(lock: Lock) -> [Same; 4] {
    [
        same(lock, &[Read, Read, Write, Write], &[0, 0, 1, 1], 2),
        same(lock, &[Read, Read, Read, Write], &[0, 0, 1, 1], 1),
        same(lock, &[Read, Write, Write, Write], &[0, 0, 1, 1], 2),
        same(lock, &[Read, Read, Read, Write, Write], &[0, 0, 1, 1, 1], 1),
    ]
}

#[test]
fn every_run_of_the_code_fits() {
    follow_all(0..100);
}

#[test]
#[ignore = "long: weekly"]
fn more_runs_of_the_code_fit() {
    follow_all(100..500);
}

fn follow_all(seeds: Range<u64>) {
    for same in Lock::ALL.into_iter().flat_map(jobs) {
        let model = same.model();
        let mut accesses = 0;
        for seed in seeds.clone() {
            accesses += follow(&same, &model, None, seed).unwrap_or_else(|what| panic!("{same:?}: {what}"));
        }
        println!("{same:?}: seeds {seeds:?}, {accesses} accesses");
    }
}
