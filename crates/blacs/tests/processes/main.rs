//! Jobs of processes, one of which is killed: every process that waits for it in a call gets an error,
//! and no process waits forever.
#![cfg(target_os = "linux")]

mod job;
mod kills;
mod late;
mod parts;
