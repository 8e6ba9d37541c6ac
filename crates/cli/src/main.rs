//! The `onesided` command: starts ranks, reproduces published figures, describes the machine.

#![forbid(unsafe_code)]

mod arguments;
mod goal;
mod info;
mod manual;
mod nics;
mod page;
mod placement;
mod plans;
mod reproduce;
mod runs;
#[cfg(target_os = "linux")]
mod simulate;
mod start;

use arguments::{Arguments, Command};
use observe::emit;
use std::{error::Error, process::ExitCode};

fn main() -> ExitCode {
    let ended = Arguments::from_command_line(std::env::args_os()).and_then(|arguments| match arguments.command {
        Command::Reproduce(options) => reproduce::reproduce(&options),
        #[cfg(target_os = "linux")]
        Command::Run(options) if options.fabric == arguments::RunFabric::Virt => simulate::simulate(options),
        Command::Run(options) => start::start(options),
        Command::Goal(options) => goal::goal(&options),
        Command::Info(options) => info::info(&options),
        Command::Completions(options) => manual::completions(&options),
        Command::Man(options) => manual::pages(&options),
    });
    ended.unwrap_or_else(|error| {
        report(&*error);
        ExitCode::from(2)
    })
}

/// Writes the error and its causes to standard error.
fn report(error: &dyn Error) {
    emit(format_args!("error: {error}"));
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // Many errors already print their cause.
        if !said.contains(&text) {
            emit(format_args!("  because: {text}"));
            said = text;
        }
        cause = next.source();
    }
}
