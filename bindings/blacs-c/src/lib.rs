//! BLACS for C and Fortran: `libblacs_fmpl.so` and `libblacs_fmpl.a`, to be linked in place of a BLACS
//! over MPI.
//!
//! The library has no interface for Rust: that is the crate `blacs`, of which this one is a thin
//! wrapper. `include/blacs_fmpl.h` declares its routines, and the book's page "ScaLAPACK without MPI"
//! explains their use.
//!
//! # Execution of a call
//! `names` exports all routines. It converts arguments that are passed by address into values
//! (`arguments`, `matrix`) and calls the implementation in `calls`. There, `boundary` takes the
//! single lock of `library`, which serializes the calls of several threads: while one thread waits
//! in a receive, all others also wait. If a call cannot complete immediately, `block_on_short` drives it on
//! the calling thread. An error, or a panic, ends the job with a message in the form of the
//! reference implementation: BLACS has no error codes.

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
mod places;
mod streams;
mod virtual_time;
