//! Entry points for fuzzing. The module is public only with `--cfg fuzzing`, for the targets in
//! `fuzz/`, whose seeds tests replay.

#![allow(unreachable_pub)]

mod simulation;

#[cfg(target_os = "linux")]
pub use crate::shm::fuzz::control_block;
pub use simulation::simulation;

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// Calls `target` with the files of a target of `fuzz/`, which a published crate does not have.
    fn replay(name: &str, target: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
        for seed in fs::read_dir(folder).into_iter().flatten().flatten() {
            println!("{}", seed.path().display());
            target(&fs::read(seed.path()).expect("a seed"));
        }
    }

    #[test]
    fn seeds_of_fuzz_targets_are_withstood() {
        #[cfg(target_os = "linux")]
        replay("control_block", control_block);
        replay("simulation", simulation);
    }
}
