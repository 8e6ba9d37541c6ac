//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod delegation;
mod delivery;
mod heap;
mod lists;
mod queue;
mod sequences;
mod tables;
mod work_spaces;
