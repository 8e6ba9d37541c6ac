//! Jobs of processes, one of which is killed: whoever waits for it in a call gets an error, and nobody
//! waits for ever.
#![cfg(target_os = "linux")]

mod job;
mod kills;
mod late;
mod parts;
