//! Jobs of processes, one of which is killed: ranks that wait for it get an error, and no rank
//! waits forever.
#![cfg(target_os = "linux")]

mod dying;
mod job;
mod kills;
mod late;
mod parts;
mod survivors;
