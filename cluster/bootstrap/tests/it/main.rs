//! Tests of jobs whose ranks are threads of this process.
#![cfg(target_os = "linux")]

mod deadlock;
mod detecting;
mod ending;
mod joining;
mod losing;
mod secret_files;
mod succession;
mod team;
mod unauthenticated;
