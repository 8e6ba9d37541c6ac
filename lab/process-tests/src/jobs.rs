//! Jobs whose launcher is the test program itself, run again: `launch RANKS PROGRAM ARGS…` over shared memory, as
//! `onesided run` does, and `simulate RANKS PROGRAM ARGS…` in virtual time, as `onesided run --fabric virt` does.

use crate::child::{Ended, this_program};
use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};
use tofu2_shm::{Bind, Launcher};

/// The first words of a launcher's command line.
const LAUNCH: &str = "launch";
const SIMULATE: &str = "simulate";

/// Returns a command that runs a program as `ranks` ranks over shared memory.
pub fn launched(ranks: usize, program: &Path, args: &[&str]) -> Command {
    started(LAUNCH, ranks, program, args)
}

/// Returns a command that runs a program as `ranks` ranks in virtual time.
pub fn simulated(ranks: usize, program: &Path, args: &[&str]) -> Command {
    started(SIMULATE, ranks, program, args)
}

fn started(word: &str, ranks: usize, program: &Path, args: &[&str]) -> Command {
    let mut command = this_program([word, &ranks.to_string()]);
    command.arg(program).args(args);
    command
}

/// Runs the job that the arguments of this test program ask for, and returns its exit code; `None` for other words.
/// Deadlocks and ranks that do not end after a failure are noticed earlier than by default. `prepare` adds to the
/// settings of a job over shared memory.
///
/// # Panics
/// If the number of ranks is none.
pub fn asked(words: &[String], prepare: impl FnOnce(Launcher) -> Launcher) -> Option<ExitCode> {
    let [word, ranks, program, args @ ..] = words else { return None };
    let number = || ranks.parse().expect("a number of ranks");
    match &**word {
        LAUNCH => Some(launch(number(), program, args, prepare)),
        SIMULATE => Some(simulate(number(), program, args)),
        _ => None,
    }
}

fn launch(ranks: usize, program: &str, args: &[String], prepare: impl FnOnce(Launcher) -> Launcher) -> ExitCode {
    let launcher = Launcher::new(ranks).stuck_after(Some(Duration::from_secs(1))).grace(Duration::from_secs(2));
    // Otherwise the system may put both on one CPU while another is idle, and each message takes a thousand times
    // as long.
    let launcher = launcher.bind(if ranks == 2 { Bind::Core } else { Bind::None });
    match prepare(launcher).command(program, args).run() {
        Ok(code) => exit_code(code),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn simulate(ranks: usize, program: &str, args: &[String]) -> ExitCode {
    let args = args.iter().map(Into::into);
    match tofu2_stepped::Launcher::new(ranks, program.into(), args).run() {
        Ok(ended) => {
            let (time, hash) = (ended.run.stats.end.as_picos() / 1000, ended.run.stats.trace_hash);
            eprintln!("simulated: {time} ns, trace {hash:016x}");
            exit_code(ended.code)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Returns the virtual time in nanoseconds and the trace hash of a simulated job that has ended.
///
/// # Panics
/// If its launcher has not printed them.
#[track_caller]
pub fn figures(ended: &Ended) -> (u64, String) {
    let line = ended.err.lines().find_map(|line| line.strip_prefix("simulated: "));
    let (time, hash) = line.and_then(|line| line.split_once(" ns, trace ")).unwrap_or_else(|| panic!("{ended}"));
    (time.parse().expect("a time"), hash.to_owned())
}
