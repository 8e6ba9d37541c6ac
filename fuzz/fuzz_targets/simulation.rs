//! Platforms, faults and programs in virtual time.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tofu2_virt::fuzz::simulation(bytes));
