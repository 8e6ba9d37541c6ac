//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod delegation;
mod heap;
mod lists;
mod programs;
mod queue;
mod raw;
mod sequences;
mod tables;
mod threads;
mod typed;
mod work_spaces;
