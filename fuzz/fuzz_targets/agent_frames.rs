//! What a launcher and its agents say to each other.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onesided::fuzz::agent_frames(bytes));
