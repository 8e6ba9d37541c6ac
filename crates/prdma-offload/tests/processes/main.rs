//! Tests between processes: neighbours that are killed while they put into memory that is lent.
#![cfg(target_os = "linux")]

mod job;
mod killed_putting;
