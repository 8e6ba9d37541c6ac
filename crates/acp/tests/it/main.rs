//! The guarantees of the crate, over threads and in virtual time.

mod basics;
mod channels;
mod counters;
mod delegation;
mod harness;
mod heap;
mod helpers;
mod lists;
mod lost;
mod programs;
mod queue;
mod raw;
mod segments;
mod sequences;
mod sizes;
mod store_buffering;
mod tables;
mod tasks;
mod threads;
mod typed;
mod work_spaces;
