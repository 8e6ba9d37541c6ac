//! Jobs of processes, one of which is killed: every rank that depends on it gets an error that
//! names it, and no rank waits forever.
#![cfg(target_os = "linux")]

mod dying;
mod job;
mod kills;
