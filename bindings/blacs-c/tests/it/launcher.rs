//! The launcher of a job, as `onesided run` is one.

use std::{process::ExitCode, time::Duration};
use tofu2_sim::shm::{Bind, Launcher};

/// Runs a program as so many ranks, which are found to be stuck, or killed after a failure, sooner
/// than by default. Two ranks have a CPU each: the system may put both on one, beside a free one,
/// and each message then takes a thousand times as long.
pub(crate) fn run(ranks: usize, program: &str, args: &[String]) -> ExitCode {
    let launcher = Launcher::new(ranks).stuck_after(Some(Duration::from_secs(1))).grace(Duration::from_secs(2));
    let launcher = launcher.bind(if ranks == 2 { Bind::Core } else { Bind::None });
    match launcher.command(program, args).run() {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
