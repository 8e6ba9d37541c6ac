//! The destinations of results: a terminal, a page and a file.

use crate::{
    report::{Report, Started},
    sheet::{self, Sheet},
};
use clap::Args;
use core::{fmt::Display, mem};
use evidence::page::Part;
use repro::progress::Progress;
use serde::Serialize;
use std::{
    error::Error,
    fs,
    io::{self, ErrorKind, Write},
    path::PathBuf,
    process::ExitCode,
};

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Output {
    /// Write the run as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
}

impl Output {
    /// Checks the page before a run of minutes, not after it. `name` is that of the part.
    ///
    /// # Errors
    /// Like [`Part::of`].
    pub(crate) fn open(&self, name: &str) -> Result<Opened<'_>, Box<dyn Error>> {
        Ok(Opened { output: self, part: self.part(name)? })
    }

    /// Returns a part of the page, if there is a page.
    pub(crate) fn part(&self, name: &str) -> Result<Option<Part>, Box<dyn Error>> {
        self.markdown.as_ref().map(|path| Part::of(path, name)).transpose()
    }

    /// Measures tables of figures and writes them.
    pub(crate) fn sheets(
        &self,
        context: Context<'_>,
        measure: impl FnOnce(&mut Steps) -> Result<Vec<Sheet>, Box<dyn Error>>,
    ) -> Result<ExitCode, Box<dyn Error>> {
        let opened = self.open(context.part)?;
        let started = Started::now(context.cores)?;
        let mut steps = Steps { progress: Progress::stderr(), begun: false };
        let sheets = measure(&mut steps)?;
        steps.progress.finish();
        let report = started.end(context.fabric, context.rounds, context.quick, None, sheets);
        let summary = report.summary(&context.notes);
        let page = format!("{summary}\n{}", sheet::markdown(&report.rows));
        opened.write(&report, &format!("{}\n{summary}", sheet::terminal(&report.rows)), &page)
    }
}

/// Shows the steps of a measurement whose results are tables.
#[derive(Debug)]
pub(crate) struct Steps {
    progress: Progress,
    begun: bool,
}

impl Steps {
    /// Completes the step in progress, and announces so many more.
    pub(crate) fn expect(&mut self, steps: usize) {
        self.complete();
        self.progress.expect(steps);
    }

    /// Completes the step in progress, and begins another.
    pub(crate) fn begin(&mut self, label: impl Display) {
        self.complete();
        self.begun = true;
        drop(self.progress.stage(&label.to_string()));
    }

    fn complete(&mut self) {
        if mem::take(&mut self.begun) {
            self.progress.stage_done();
        }
    }
}

/// The context of a measurement whose results are tables.
#[derive(Clone, Debug)]
pub(crate) struct Context<'a> {
    /// The part of a page.
    pub(crate) part: &'a str,
    /// The fabric of the ranks.
    pub(crate) fabric: &'a str,
    /// The cores that ranks are bound to.
    pub(crate) cores: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    /// Further lines of the summary.
    pub(crate) notes: String,
}

impl<'a> Context<'a> {
    /// Returns the context of one round of ranks that are not bound.
    pub(crate) fn new(part: &'a str, fabric: &'a str, quick: bool) -> Self {
        Context { part, fabric, cores: Vec::new(), rounds: 1, quick, notes: String::new() }
    }
}

/// Destinations that were checked.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    output: &'a Output,
    part: Option<Part>,
}

impl Opened<'_> {
    /// Writes a report, in each form that is wanted.
    pub(crate) fn write<R: Serialize>(
        self,
        report: &Report<R>,
        terminal: &str,
        markdown: &str,
    ) -> Result<ExitCode, Box<dyn Error>> {
        if let Some(part) = self.part {
            part.write(markdown)?;
        }
        let text = match &self.output.json {
            Some(path) if path.as_os_str() == "-" => serde_json::to_string_pretty(report)? + "\n",
            json => {
                if let Some(path) = json {
                    fs::write(path, serde_json::to_string_pretty(report)? + "\n")?;
                }
                terminal.to_owned()
            }
        };
        match io::stdout().lock().write_all(text.as_bytes()) {
            // A reader that closes its end early is not an error.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}
