//! `cargo xtask bench-cluster`: the cost of a job on several nodes, compared with a reference
//! measured in the same run, and whether it meets its goal. All nodes are this machine.
//!
//! The measured code is in two programs: the example `bare` of `fabric-ofi` (operations between
//! nodes, compared with bare calls of libfabric) and `in_cluster` (everything else).

mod commands;
mod internode;
mod intranode;
mod memory;
mod row;
mod start;
mod waits;

use crate::{bench::report, ofi::build, page};
use clap::Args;
use row::Row;
use serde::Serialize;
use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fewer measurements, in half a minute; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// Measure only these parts.
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Part>,
}

/// The measurements, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Operations between nodes.
    Far,
    /// Operations within a node.
    Here,
    /// Atomics at a rank that sleeps.
    Asleep,
    /// CPU time of a rank that waits.
    Idle,
    /// From the launch to the first barrier.
    Start,
    /// Memory per peer.
    Memory,
}

/// The providers of libfabric that work between processes of one machine, and their interface.
const PROVIDERS: [(&str, Option<&str>); 2] = [("tcp;ofi_rxm", Some("lo")), ("shm", None)];

/// The result of a run.
#[derive(Debug, Default, Serialize)]
struct Found {
    rows: Vec<Row>,
    /// The measurements that were skipped, with the reasons.
    skipped: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(why) = build::missing() {
        println!("bench-cluster: SKIPPED: {why}");
        return Ok(ExitCode::SUCCESS);
    }
    let part = options.markdown.as_ref().map(|path| page::Part::of(path, "bench-cluster")).transpose()?;
    let bare = build::for_release("fabric-ofi", "ofi", &["bare"])?.join("bare");
    let program = build::for_release("onesided-examples", "onesided/ofi", &["in_cluster"])?.join("in_cluster");
    let (begun, load) = (Instant::now(), report::load());
    let date = report::date(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
    let (mut found, quick) = (Found::default(), options.quick);
    for part in [Part::Far, Part::Here, Part::Asleep, Part::Idle, Part::Start, Part::Memory] {
        if !options.only.is_empty() && !options.only.contains(&part) {
            continue;
        }
        let before = (found.rows.len(), Instant::now());
        match part {
            Part::Far => internode::measure(&bare, quick, &mut found),
            Part::Here => intranode::measure(&program, quick, &mut found),
            Part::Asleep => waits::asleep(&program, quick, &mut found),
            Part::Idle => waits::idle(&program, quick, &mut found),
            Part::Start => start::measure(&program, quick, &mut found),
            Part::Memory => memory::measure(&program, quick, &mut found),
        }?;
        eprintln!("{part:?}: {} rows, {:.0} s", found.rows.len() - before.0, before.1.elapsed().as_secs_f64());
    }
    let machine = report::Machine::here(Vec::new());
    let said = format!(
        "{}`cargo xtask bench-cluster`, {date}, {:.0} s, commit {}.\n{}, {} CPUs, kernel {}.\nLoad average before the run {load}, after it {}.\n{}",
        if quick { "QUICK RUN, its figures say little: " } else { "" },
        begun.elapsed().as_secs_f64(),
        report::commit(),
        machine.processor,
        std::thread::available_parallelism()?,
        machine.kernel,
        report::load(),
        found.in_short(),
    );
    if let Some(part) = part {
        part.write(&format!("{said}\n{}\n", page::markdown(row::table(&found.rows))))?;
    }
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        writeln!(out, "{}\n\n{said}", page::terminal(row::table(&found.rows)))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Found {
    /// Prints that a measurement is skipped.
    fn skip(&mut self, what: &str, why: impl core::fmt::Display) {
        let line = format!("SKIPPED: {what}: {why}");
        eprintln!("{line}");
        self.skipped.push(line);
    }

    fn in_short(&self) -> String {
        let met = self.rows.iter().filter(|row| row.met).count();
        let lines = [format!("Goals met: {met} of {}.\n", self.rows.len())];
        lines.into_iter().chain(self.skipped.iter().map(|line| format!("{line}.\n"))).collect()
    }
}
