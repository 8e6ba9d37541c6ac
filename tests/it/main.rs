//! Guarantees that involve several crates of the workspace, on every provider.

mod conformance;
mod error_chains;
mod harness;
mod locks;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod page;
mod persistent;
mod runtimes;

/// Returns the number in an environment variable, if that is set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}
