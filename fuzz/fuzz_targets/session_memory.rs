//! What a coordinator says to a session that would stand in for it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap::fuzz::memory(bytes));
