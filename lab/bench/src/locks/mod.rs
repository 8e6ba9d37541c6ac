//! The lock workloads of the literature for every lock, between processes, next to a mutex in the
//! same run, or in virtual time (`cargo xtask bench-locks`).
//!
//! `docs/evidence/performance.md` describes how a figure is obtained and how to read it. `repro`
//! contains the workloads. They are not part of a reproduction, since there are no recorded published
//! values to compare them with.

mod campaign;
mod contestant;
mod mutex;
mod rank;
pub(crate) mod row;
mod simulated;
mod table;

pub(crate) use rank::JobPlan;

use crate::{
    output::Output,
    outside::{job::Provider, placement::cores},
    report::{self, Report, Started, VIRTUAL},
};
use clap::Args;
use contestant::Contestant;
use repro::{
    progress::Progress,
    workloads::locks::{Workload, WriterShare},
};
use row::LockRow;
use simulated::SimulatedPlan;
use std::{error::Error, process::ExitCode, time::Duration};
use table::{markdown, terminal};

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
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let output = options.output.open(if options.virt { "locks-virt" } else { "locks" })?;
    let report = measure(options)?;
    let summary = report.summary(&notes(options, &report));
    let page = format!("{summary}\n{}", markdown(&report.rows));
    output.write(&report, &format!("{}\n{summary}", terminal(&report.rows)), &page)
}

fn measure(options: &Options) -> Result<Report<LockRow>, Box<dyn Error>> {
    if cfg!(debug_assertions) && !options.virt {
        eprintln!("warning: built without optimisation of a release; figures say little");
    }
    let cores = if options.virt { Vec::new() } else { cores(&options.cores)? };
    let started = Started::now(cores.clone())?;
    let (fabric, rows, repetitions) = match options.virt {
        true => (VIRTUAL, simulated::run(&virtual_time(options)?, &mut Progress::stderr())?, 1),
        false => {
            let plan = wall_clock(options, cores);
            (options.fabric.name(), campaign::run(&plan, options.fabric)?, plan.repetitions)
        }
    };
    Ok(started.end(fabric, repetitions, options.quick, Some(options.seed), rows))
}

/// Returns what the summary says about the ranks.
fn notes(options: &Options, report: &Report<LockRow>) -> String {
    if options.virt {
        let hashes = report.rows.iter().filter_map(|row| Some(row.simulation?.trace_hash));
        return report::simulated(options.seed, hashes);
    }
    let ranks = if options.fabric == Provider::Shm { "processes" } else { "threads" };
    format!("Ranks are {ranks}, {} repetitions, seed {}.\n", report.run.rounds, options.seed)
}

fn virtual_time(options: &Options) -> Result<SimulatedPlan, String> {
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

fn wall_clock(options: &Options, cores: Vec<usize>) -> campaign::Campaign {
    let every = Contestant::all().collect();
    let length = |ms| Duration::from_millis(u64::from(options.length.unwrap_or(ms)));
    campaign::Campaign {
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
