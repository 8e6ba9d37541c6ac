//! The limits of the machine: the operations of the fabrics in bare forms, as straightforward code without checks has
//! them in C. `cargo measure operations` and `cargo bench` compare the fabric with them.
//!
//! The forms run over [memory](bare) that belongs to no fabric, which all ranks map. [`Machine`] runs some of them
//! between threads of one process.

#![cfg(target_os = "linux")]

pub mod bare;
pub mod cores;
pub mod limit;
pub mod lines;
mod machine;
pub mod rendezvous;

pub use machine::Machine;
