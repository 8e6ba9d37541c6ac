//! Arguments of BLACS routines, as C programs pass them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| blacs_fmpl::fuzz::arguments(bytes));
