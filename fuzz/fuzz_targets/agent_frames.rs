//! Frames between a launcher and its agents.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onesided::fuzz::agent_frames(bytes));
