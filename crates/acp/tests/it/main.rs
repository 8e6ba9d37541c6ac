//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod delegation;
mod programs;
mod queue;
mod raw;
mod threads;
mod typed;
