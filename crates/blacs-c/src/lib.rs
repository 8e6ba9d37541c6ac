//! BLACS for C and Fortran: `libblacs_fmpl.so` and `libblacs_fmpl.a`, to be linked in place of a
//! BLACS over MPI.
//!
//! The library has no interface for Rust: that is the crate `blacs`, over which this one is a thin
//! cover. `include/blacs_fmpl.h` declares its routines, and the book's page "ScaLAPACK without MPI"
//! says how to use them.
//!
//! # What happens in a call
//! `names` exports all routines. It makes values of what comes by address (`arguments`, `matrix`),
//! and goes on in `calls`. There, `boundary` takes the one lock of `library`, so that threads may
//! call: one after the other, and a receive that waits makes all of them wait. What a call can't do
//! at once, `run` does on the calling thread. An error, or a panic, ends the job with a message
//! in the form of the reference implementation: BLACS has no error codes.

#![cfg(unix)]
#![allow(clippy::too_many_arguments, reason = "the argument lists are BLACS's")]

mod allocations;
mod arguments;
mod boundary;
mod calls;
mod clock;
mod contexts;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(test, not(fuzzing)))]
mod fuzz;
mod int;
mod letters;
mod library;
mod matrix;
mod names;
mod origins;
mod run;
mod streams;
