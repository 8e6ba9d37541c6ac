//! uTofu for C programs: `libtofucom.so` and `libtofucom.a`, to be linked in place of the library of
//! the machine.
//!
//! The library has no interface for Rust: that is the crate `fabric-offload`, whose control queues and
//! barrier unit this one wraps. `include/utofu.h` declares its functions, and the book's page "uTofu
//! without the machine" explains their use.
//!
//! # Execution of a call
//! `names` exports all functions. It checks pointers and calls `vcq`, `memory`, `request`, `polling`
//! or `gates`. The first call starts the library: `job` attaches the process to its job. Each rank
//! is a node of a torus (`torus`). A VCQ is a control queue of `tofu2-shm`, behind a lock of its own
//! (`vcq`); `ids` converts identifiers and addresses to those of the interface.
//!
//! `machine` is what a rank runs on: `tofu2-shm`, or a simulator in virtual time (`tofu2-stepped`).
//!
//! Every failure is a return code with a text (`failure`). A panic ends the process with a message.

#![cfg(target_os = "linux")]

mod caps;
mod failure;
mod gates;
mod ids;
mod job;
mod machine;
mod memory;
mod names;
mod observing;
mod polling;
mod posting;
mod request;
mod settings;
mod strict;
mod torus;
mod vcq;
