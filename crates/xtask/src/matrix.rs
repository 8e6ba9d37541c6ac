//! `cargo xtask matrix`: the capability matrix of `docs/fabric-contract.md`, written anew.

use crate::suite;
use std::{error::Error, process::ExitCode};

pub(crate) fn run() -> Result<ExitCode, Box<dyn Error>> {
    suite::run("matrix::is_what_was_found", &[suite::writing()])
}
