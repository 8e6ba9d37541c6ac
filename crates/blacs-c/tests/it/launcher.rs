//! The launcher of a job, as `onesided run` is one.

use std::{process::ExitCode, time::Duration};
use tofu2_sim::shm::Launcher;

/// Runs a program as so many ranks, which are found to be stuck, or killed after a failure, sooner
/// than by default.
pub(crate) fn run(ranks: usize, program: &str, args: &[String]) -> ExitCode {
    let launcher = Launcher::new(ranks).stuck_after(Some(Duration::from_secs(1))).grace(Duration::from_secs(2));
    match launcher.command(program, args).run() {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
