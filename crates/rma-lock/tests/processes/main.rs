//! What is run between processes: memory under a lock, and ranks that are killed.
//!
//! The lock that goes on when its ranks die is tried by kills at every call of the fabric that one
//! of its operations makes ([`points`]), at random moments ([`hammered`]), and to see how long it
//! takes until a survivor gets in ([`delays`]). [`nodes`] and [`locked`] have locks that do not go
//! on: there the others are told. In `cargo test` a sample of each; `cargo xtask kill --points`,
//! `cargo xtask kill --lock` and `cargo xtask death --lock` do more.
#![cfg(target_os = "linux")]

mod checked;
mod delays;
mod dying;
mod hammered;
mod job;
mod locked;
mod nodes;
mod points;
mod scenes;
