//! Named locks for other languages: `libonesided_lock.so` and `libonesided_lock.a`, with
//! `include/onesided_lock.h` for C and `python/onesided_lock.py` for Python.
//!
//! The library has no Rust interface: that is the crate `onesided-named-lock`, of which this one is
//! a thin wrapper. `docs/systems/named-lock.md` describes its use.
//!
//! # Path of a call
//! `names` exports all functions and converts arguments that are passed by address to values.
//! `calls` looks up the lock in the table of `handles`. Handles are numbers, so a closed or invalid
//! handle causes an error and never an access to memory. A hold belongs to the thread that took it.
//! A failure is returned as a code (`codes`); its text is stored per thread (`last`). A panic is
//! also returned as a code.

#![cfg(target_os = "linux")]

mod calls;
mod codes;
mod handles;
mod last;
mod names;
