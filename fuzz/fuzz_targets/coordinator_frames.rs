//! What arrives over a connection between coordinator and session.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap::fuzz::frames(bytes));
