//! Slurm's list of nodes, lines of PMI-1, and variables.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap::fuzz::texts(bytes));
