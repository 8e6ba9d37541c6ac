//! Jobs of processes, one of which is killed: whoever needs it gets an error that names it, and
//! nobody waits for ever.
#![cfg(target_os = "linux")]

mod dying;
mod job;
mod kills;
