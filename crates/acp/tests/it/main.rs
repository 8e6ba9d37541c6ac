//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod channels;
mod delegation;
mod heap;
mod lists;
mod queue;
mod segments;
mod sequences;
mod tables;
mod tasks;
mod work_spaces;
