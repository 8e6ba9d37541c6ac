//! A farm that loses a worker. Rank 0 gives each worker a task, and another for each result, from any worker; one
//! worker is killed in the middle of its first task. Rank 0 acknowledges the loss, gives the task to another worker,
//! and completes the work.
//!
//! ```text
//! cargo example work_farm --release -- --ranks 4
//! cargo example work_farm --release -- --ranks 4 --fabric virt
//! cargo example work_farm --release -- --ranks 4 --tasks 100000 --spare
//! ```
//!
//! Between processes the worker is killed as by `kill -9`; elsewhere its program panics. A job that has
//! lost a rank ends with that rank's exit code, so the launcher's is not 0. `--spare` kills no worker.

mod farm;

use farm::{Death, TASKS, farm};
use onesided::{Backend, Program};
use std::ffi::OsString;

const USAGE: &str = "\
A farm that hands out tasks, and loses a worker.

  --tasks N            tasks (40)
  --spare              kill no worker
";

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let spare = rest.contains("--spare");
    let tasks: Option<u64> = rest.opt_value_from_str("--tasks").map_err(|error| error.to_string())?;
    if let more @ [_, ..] = &rest.finish()[..] {
        return Err(format!("there is no {more:?}; --help says what there is"));
    }
    let of_processes = |backend| matches!(backend, Backend::Shm | Backend::Cluster);
    let processes = onesided::Launch::from_args().is_ok_and(|(launch, _)| of_processes(launch.backend));
    let death = (!spare).then_some(if processes { Death::Kill } else { Death::Panic });
    Ok(async move |fabric| farm(fabric, tasks.unwrap_or(TASKS), death).await)
}

fn main() -> std::process::ExitCode {
    onesided::launch_with(USAGE, program)
}
