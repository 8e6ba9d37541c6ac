//! Schedules of messages, text and binary: reading, writing, replaying.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tofu2_virt::fuzz::schedule(bytes));
