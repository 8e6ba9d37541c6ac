//! Jobs of processes, one of which is killed: whoever waits for it gets an error, and nobody waits
//! for ever.
#![cfg(target_os = "linux")]

mod dying;
mod job;
mod kills;
mod late;
mod parts;
