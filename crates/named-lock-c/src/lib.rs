//! Named locks for other languages: `libonesided_lock.so` and `libonesided_lock.a`, with
//! `include/onesided_lock.h` for C and `python/onesided_lock.py` for Python.
//!
//! The library has no interface for Rust: that is the crate `onesided-named-lock`, over which this one
//! is a thin cover. `docs/systems/named-lock.md` says how to use it.
//!
//! # What happens in a call
//! `names` exports all functions, and makes values of what comes by address. `calls` finds the lock in
//! the table of `handles`, which are numbers, so that one that is closed or made up is an error and
//! never an access to memory. A hold belongs to the thread that took it. What went wrong is a code
//! (`codes`); a text for people is kept for each thread (`last`). A panic is a code, too.

#![cfg(target_os = "linux")]

mod calls;
mod codes;
mod handles;
mod last;
mod names;
