//! The benchmark tool: operations of the fabrics, locks, exchanges and messages, beside the limits of the machine,
//! other libraries and published locks. `cargo measure --help` lists what it measures; `cargo xtask bench…` runs it.
//!
//! Every measurement writes a table for a terminal, `--markdown` one for a page, and `--json` all figures.

#![cfg(target_os = "linux")]

mod beside;
mod cluster;
mod collectives;
mod command;
mod foreign;
mod goal;
mod locks;
mod mechanisms;
mod named;
mod operations;
mod output;
mod outside;
mod peers;
mod quantity;
mod report;
mod sheet;
mod statistics;
mod transports;

pub use command::run;
