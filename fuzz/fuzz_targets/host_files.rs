//! Files of hosts, and plans of agents.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onesided::fuzz::host_files(bytes));
