//! Tests between processes: memory under a lock, and ranks that are killed.
//!
//! The lock that continues when its ranks die is tested by kills at every call of the fabric that
//! one of its operations makes ([`points`]), at random moments ([`hammered`]), and with a
//! measurement of the time until a survivor enters ([`delays`]). [`holders`], [`nodes`] and
//! [`locked`] test locks that do not continue: there the other ranks receive an error. `cargo test`
//! runs a sample of each; `cargo xtask kill --points`, `cargo xtask kill --lock` and
//! `cargo xtask death --lock` run more.
#![cfg(target_os = "linux")]

mod checked;
mod delays;
mod dying;
mod hammered;
mod holders;
mod job;
mod locked;
mod nodes;
mod points;
mod scenes;
