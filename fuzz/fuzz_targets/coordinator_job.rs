//! What sessions say to a coordinator, or to a standby.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap::fuzz::job(bytes));
