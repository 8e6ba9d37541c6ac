//! The memory file of a job, and the variable that leads to it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tofu2_shm::fuzz::control_block(bytes));
