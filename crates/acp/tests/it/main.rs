//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod channels;
mod delegation;
mod queue;
mod segments;
mod tasks;
