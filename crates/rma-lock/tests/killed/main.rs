//! The lock that goes on when its ranks die, between processes that are killed: at every call of the fabric that an operation of the lock makes, at random
//! moments, and to see how long it takes until a survivor gets in.
//!
//! [`nodes`] has a lock that does not: there the others are told.
//!
//! In `cargo test` a sample of each; `cargo xtask kill --points`, `cargo xtask kill --lock` and `cargo xtask death --lock` do more.
#![cfg(target_os = "linux")]

mod checked;
mod delays;
mod dying;
mod hammered;
mod job;
mod nodes;
mod points;
mod scenes;
