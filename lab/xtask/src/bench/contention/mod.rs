//! `cargo xtask bench-locks`: the lock workloads of the literature for every lock, between
//! processes, next to a mutex in the same run, or in virtual time.
//!
//! `docs/evidence/performance.md` describes how a figure is obtained and how to read it. `repro`
//! contains the workloads and the figures computed from them; this module contains the processes,
//! the mutex and the command.

mod job;
mod mutex;

pub(crate) use job::be_rank;

use super::{
    command, cores,
    job::Provider,
    report::{self, Machine, Run},
};
use crate::page;
use clap::Args;
use job::Contestant;
use repro::{
    lock_bench::{LockRow, SimulatedPlan, markdown, run as simulate, terminal},
    progress::Progress,
    workloads::locks::{Workload, WriterShare},
};
use serde::Serialize;
use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// In virtual time on FX100 instead of between processes of this machine.
    #[arg(long)]
    virt: bool,
    /// Only these workloads, of LB, ECSB, SOB, WCSB, WARB, DHT.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Only these locks: ours, `futex-mutex` (on wall clock), and the published ones that no run has
    /// by default: `shift-lock`, `dec-lock`, `mcs`, `spin`.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    locks: Vec<Contestant>,
    /// Shares of writers, per cent (default: 0.2,2,5,25,100).
    #[arg(long, value_name = "PERCENT", num_args = 1.., value_delimiter = ',')]
    writers: Vec<WriterShare>,
    /// Numbers of ranks (default: 2,4,16; with --virt 16,64,256,1024,4096).
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=4096))]
    ranks: Vec<u32>,
    /// Repetitions on wall clock; virtual time needs one.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Length of a repetition on wall clock, in ms (default: 25; 80 for more than 4 ranks).
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    length: Option<u32>,
    /// Acquisitions of all ranks in virtual time (default: 16384).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    acquisitions: Option<u32>,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fabric of the ranks on wall clock.
    #[arg(long, value_enum, default_value = "shm")]
    fabric: Provider,
    /// Cores to bind the ranks to, in turn (default: the first two that are allowed).
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Run for a few seconds as a smoke test; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Write the run as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RankOptions {
    pub(super) plan: String,
}

/// The contents of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    machine: Machine,
    run: Run,
    seed: u64,
    rows: Vec<LockRow>,
}

const SCHEMA: u32 = 1;

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let marker = if options.virt { "locks-virt" } else { "locks" };
    // Checked before the run, which takes minutes, not after it.
    let part = options.markdown.as_ref().map(|path| page::Part::of(path, marker)).transpose()?;
    let report = measure(options)?;
    if let Some(part) = part {
        part.write(&format!("{}\n{}", summary(&report), markdown(&report.rows)))?;
    }
    let mut out = io::stdout().lock();
    let text = match &options.json {
        Some(path) if path.as_os_str() == "-" => serde_json::to_string_pretty(&report)? + "\n",
        json => {
            if let Some(path) = json {
                fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
            }
            format!("{}\n{}", terminal(&report.rows), summary(&report))
        }
    };
    match out.write_all(text.as_bytes()) {
        // A reader that closes its end early is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn measure(options: &Options) -> Result<Report, Box<dyn Error>> {
    if cfg!(debug_assertions) && !options.virt {
        eprintln!("warning: built without optimisation of a release; figures say little");
    }
    let cores = if options.virt { Vec::new() } else { cores(&options.cores)? };
    let mut machine = Machine::here(cores.clone());
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let begun = Instant::now();
    let (rows, repetitions) = match options.virt {
        true => (simulate(&simulated(options)?, &mut Progress::stderr())?, 1),
        false => {
            let plan = wall_clock(options, cores);
            (job::run(&plan, options.fabric)?, plan.repetitions)
        }
    };
    machine.load_after = report::load();
    let fabric = if options.virt { "virt" } else { options.fabric.name() };
    let run = Run {
        command: command(),
        fabric: fabric.to_owned(),
        rounds: repetitions,
        quick: options.quick,
        commit: report::commit(),
        date: report::date(began),
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok(Report { schema: SCHEMA, machine, run, seed: options.seed, rows })
}

fn simulated(options: &Options) -> Result<SimulatedPlan, String> {
    let usual = if options.quick { SimulatedPlan::quick(options.seed) } else { SimulatedPlan::whole(options.seed) };
    let kinds = options.locks.iter().map(|contestant| match contestant {
        Contestant::Lock(lock) => Ok(*lock),
        Contestant::Mutex => Err("there is no mutex in virtual time".to_owned()),
    });
    Ok(SimulatedPlan {
        workloads: or(&options.workloads, usual.workloads),
        writers: or(&options.writers, usual.writers),
        ranks: or(&options.ranks, usual.ranks),
        locks: or(&kinds.collect::<Result<Vec<_>, _>>()?, usual.locks),
        acquisitions: options.acquisitions.unwrap_or(usual.acquisitions),
        ..usual
    })
}

fn wall_clock(options: &Options, cores: Vec<usize>) -> job::Campaign {
    let every = Contestant::all().collect();
    let length = |ms| Duration::from_millis(u64::from(options.length.unwrap_or(ms)));
    job::Campaign {
        workloads: or(&options.workloads, Workload::ALL.to_vec()),
        writers: or(&options.writers, WriterShare::PUBLISHED.to_vec()),
        ranks: or(&options.ranks, vec![2, 4, 16]),
        locks: or(&options.locks, every),
        repetitions: if options.quick { 1 } else { usize::from(options.repetitions) },
        length: if options.quick { length(2) } else { length(25) },
        oversubscribed_length: if options.quick { length(10) } else { length(80) },
        seed: options.seed,
        cores,
    }
}

/// Returns the requested values, or else the default.
fn or<T: Clone>(asked: &[T], usual: Vec<T>) -> Vec<T> {
    if asked.is_empty() { usual } else { asked.to_vec() }
}

/// Returns the command, date and machine of the run.
fn summary(report: &Report) -> String {
    let (run, machine) = (&report.run, &report.machine);
    let quick = if run.quick { "QUICK RUN, its figures say little: " } else { "" };
    let made = format!("{quick}`{}`, {}, {:.0} s, commit {}.\n", run.command, run.date, run.seconds, run.commit);
    if run.fabric == "virt" {
        let hashes = report.rows.iter().filter_map(|row| Some(row.simulation?.trace_hash));
        return made + &report::simulated(report.seed, hashes);
    }
    let cores = machine.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
    format!(
        "{made}{}, kernel {}, cores {cores}, ranks are {}, {} repetitions, seed {}.\n\
         Load average before the run {}, after it {}.\n",
        machine.processor,
        machine.kernel,
        if run.fabric == "shm" { "processes" } else { "threads" },
        run.rounds,
        report.seed,
        machine.load_before,
        machine.load_after
    )
}
