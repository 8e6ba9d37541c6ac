//! The launcher of a job, like that of `onesided run`.

use std::{process::ExitCode, time::Duration};
use tofu2_shm::{Bind, Launcher};

/// Runs a program as `ranks` ranks, with shorter timeouts than the defaults for detecting a
/// deadlock and for killing ranks after a failure. Two ranks have a CPU each: otherwise the system
/// may put both on one CPU while another is idle, and each message takes a thousand times as long.
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
