//! Pages and tables that `cargo xtask` and the benchmark tool write.

#![forbid(unsafe_code)]

pub mod page;
