//! The cost of a job on several nodes, compared with a reference measured in the same run, and
//! whether it meets its goal (`cargo xtask bench-cluster`). All nodes are this machine.
//!
//! The measured code is in two programs that are built over libfabric: the example `bare` of
//! `fabric-ofi` (operations between nodes, compared with bare calls of libfabric) and `in_cluster`
//! (everything else).

mod commands;
mod internode;
mod intranode;
mod memory;
mod row;
mod start;
mod waits;

use crate::{output::Output, report::Started};
use clap::Args;
use evidence::page;
use row::Row;
use std::{error::Error, path::PathBuf, process::ExitCode, thread::available_parallelism, time::Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fewer measurements, in half a minute; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Measure only these parts.
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Part>,
    /// The folder of the programs `bare` and `in_cluster`.
    #[arg(long, value_name = "FOLDER")]
    programs: PathBuf,
    #[command(flatten)]
    output: Output,
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
#[derive(Debug, Default)]
struct Found {
    rows: Vec<Row>,
    /// The measurements that were skipped, with the reasons.
    skipped: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let output = options.output.open("bench-cluster")?;
    let started = Started::now(Vec::new())?;
    let [bare, program] = ["bare", "in_cluster"].map(|name| options.programs.join(name));
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
    let notes = format!("{} CPUs.\n{}", available_parallelism()?, found.in_short());
    let report = started.end("cluster", 1, quick, None, found.rows);
    let (summary, table) = (report.summary(&notes), || row::table(&report.rows));
    let page = format!("{summary}\n{}\n", page::markdown(table()));
    output.write(&report, &format!("{}\n\n{summary}", page::terminal(table())), &page)
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
