//! What the crate promises, over threads and in virtual time.

mod basics;
mod bed;
mod delegation;
mod delivery;
mod heap;
mod queue;
mod sequences;
mod work_spaces;
