//! `onesided run`.

use crate::arguments::Run;
use std::{error::Error, process::ExitCode};
use tofu2_sim::shm::Launcher;

/// Start the ranks and be their exit code.
pub(crate) fn start(options: Run) -> Result<ExitCode, Box<dyn Error>> {
    let mut program = options.program.into_iter();
    let executable = program.next().ok_or("no program given")?;
    let mut launcher = Launcher::new(options.ranks.get());
    if let Some(bytes) = options.segment_bytes {
        launcher = launcher.segment_bytes(bytes);
    }
    if let Some(ranks) = options.ranks_per_node {
        launcher = launcher.ranks_per_node(ranks.get());
    }
    let code = launcher.command(executable, program).run()?;
    // What does not fit an exit code is still a failure.
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
