//! Shell completions and manual pages, generated from the definition of the command line.

use crate::arguments::{Arguments, Completions, Man};
use clap::CommandFactory;
use std::{
    error::Error,
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
    process::ExitCode,
};

/// Writes the completions for a shell to standard output.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn completions(options: &Completions) -> Result<ExitCode, Box<dyn Error>> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "onesided", &mut text);
    print(&text)
}

/// Writes the manual page of the command to standard output, or all pages to a directory.
///
/// # Errors
/// If they can't be written there.
pub(crate) fn pages(options: &Man) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(directory) = &options.directory {
        let written = fs::create_dir_all(directory).and_then(|()| write_to(directory));
        written.map_err(|error| format!("the manual pages can't be written to {}: {error}", directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    print(&text)
}

/// Writes the pages of the command and of its subcommands, except for `help`, which the pages
/// replace.
fn write_to(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), directory)
}

/// A reader that closes its end early is not an error.
fn print(text: &[u8]) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output can't be written: {error}").into())
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
