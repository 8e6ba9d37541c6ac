//! Running one test, mostly of the conformance suite, with more than `cargo test` asks of it.

use std::{
    error::Error,
    process::{Command, ExitCode},
};

/// Run the test `name`, with these environment variables, and be its exit code. What it prints is shown.
pub(crate) fn run(name: &str, environment: &[(&str, String)]) -> Result<ExitCode, Box<dyn Error>> {
    run_of("onesided", "it", &format!("conformance::{name}"), environment)
}

/// The same with a test of another package's.
pub(crate) fn run_of(
    package: &str,
    test: &str,
    name: &str,
    environment: &[(&str, String)],
) -> Result<ExitCode, Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--package", package, "--test", test, "--"]);
    cargo.args(["--exact", name, "--nocapture"]);
    cargo.envs(environment.iter().map(|(variable, value)| (variable, value)));
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The variable that lets a test rewrite its part of a page.
pub(crate) fn writing() -> (&'static str, String) {
    ("CONFORMANCE_WRITE", "1".to_owned())
}
