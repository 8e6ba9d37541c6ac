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
    use fabric_conformance::seeds::replay;

    #[test]
    fn seeds_of_fuzz_targets_are_withstood() {
        #[cfg(target_os = "linux")]
        replay(env!("CARGO_MANIFEST_DIR"), "control_block", control_block);
        replay(env!("CARGO_MANIFEST_DIR"), "simulation", simulation);
    }
}
