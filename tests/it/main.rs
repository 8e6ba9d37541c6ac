//! What the workspace's crates promise together, on every provider.

mod beds;
mod conformance;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod page;
mod persistent;
mod runtimes;
