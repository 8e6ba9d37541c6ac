//! Tests of jobs whose ranks are threads of this process.
#![cfg(target_os = "linux")]

mod detecting;
mod ending;
mod joining;
mod losing;
mod secret_files;
mod standstill;
mod strangers;
mod succession;
mod team;
