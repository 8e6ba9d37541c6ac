//! What the crate promises, over threads and in virtual time.

mod any;
mod basics;
mod bed;
mod misuse;
mod spooled;
