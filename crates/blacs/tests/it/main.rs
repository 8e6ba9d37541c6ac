//! Tests of the crate's guarantees, on threads and in virtual time.

mod bits;
mod broadcasts;
mod bytes;
mod combines;
mod errors;
mod grids;
mod hardware;
mod harness;
mod late;
mod order;
mod points;
mod reduce;
