//! Messages of a coordinator to a session that would succeed it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap::fuzz::memory(bytes));
