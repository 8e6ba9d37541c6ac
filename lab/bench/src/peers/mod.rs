//! Published locks beside ours, by number of clients and skew, in virtual time (`cargo xtask
//! bench-peers`). `bench-locks` takes them by name, on wall clock too.

mod ratios;
mod sweep;
mod table;

use crate::{
    output::Output,
    report::{self, Started, VIRTUAL},
};
use clap::Args;
use ratios::ratios;
use repro::{
    ReproError,
    peers::{Competitor, Peer},
    progress::Progress,
    report::Throughput,
    workloads::locks::WriterShare,
};
use rma_lock::locks::LockKind;
use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Duration};
use sweep::{Locks, SweepPlan, SweepRow};
use table::{markdown, terminal};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of clients (default: 16,256,4096,65536).
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=663_552))]
    clients: Vec<u32>,
    /// Numbers of locks, each with a skew of Zipf's law: `64:0.99` (default: 1,64:0.99; 1 alone
    /// beyond 4096 clients).
    #[arg(long, value_name = "N[:SKEW]", num_args = 1.., value_delimiter = ',', value_parser = locks)]
    homes: Vec<Locks>,
    /// Shares of writers, per cent (default: 5,50,100).
    #[arg(long, value_name = "PERCENT", num_args = 1.., value_delimiter = ',')]
    writers: Vec<WriterShare>,
    /// Only these locks (default: the published ones and five of ours; beyond 4096 clients none that
    /// retries).
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    locks: Vec<Competitor>,
    /// Acquisitions of all clients together (default: 16384); each has two at least.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    acquisitions: Option<u32>,
    /// Time limit of a job for each of its clients, in µs of virtual time (default: 100), but at
    /// least 50 ms; locks that can give up do so then.
    #[arg(long, value_name = "US")]
    within_each: Option<u32>,
    /// 16 clients, one share of writers and 256 acquisitions unless others are given: a smoke test.
    #[arg(long)]
    quick: bool,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw throughput against clients.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The rows' part of the page. If it is `peers`, the ratios are written as the part `ratios`.
    #[arg(long, value_name = "NAME", default_value = USUAL)]
    part: String,
    #[command(flatten)]
    output: Output,
}

const USUAL: &str = "peers";

fn locks(text: &str) -> Result<Locks, String> {
    let (number, skew) = text.split_once(':').unwrap_or((text, "0"));
    let locks = number.parse().ok().filter(|&number| number > 0).zip(skew.parse().ok());
    let locks = locks.filter(|&(_, skew): &(u32, f64)| skew >= 0.0 && skew.is_finite());
    let (number, skew) = locks.ok_or("a number of locks, and perhaps a colon and an exponent: 64:0.99")?;
    Ok(Locks { number, skew })
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let output = options.output.open(&options.part)?;
    let started = Started::now(Vec::new())?;
    let (mut rows, mut progress, plans) = (Vec::new(), Progress::stderr(), plans(options));
    progress.expect(plans.iter().map(SweepPlan::jobs).sum());
    for plan in &plans {
        rows.extend(sweep::run(plan, &mut progress)?);
    }
    progress.finish();
    let report = started.end(VIRTUAL, 1, options.quick, Some(options.seed), rows);
    let rows = &report.rows;
    let summary = report.summary(&report::simulated(options.seed, rows.iter().map(|row| row.trace_hash)));
    if let Some(part) = options.output.part("ratios")?.filter(|_| options.part == USUAL) {
        part.write(&ratios(rows))?;
    }
    if let Some(path) = &options.svg {
        fs::write(path, plot(rows)?)?;
    }
    let page = format!("{summary}\n{}", markdown(rows));
    output.write(&report, &format!("{}\n{}\n{summary}", terminal(rows), ratios(rows)), &page)
}

/// Draws the throughput of the cases with one lock.
fn plot(rows: &[SweepRow]) -> Result<String, ReproError> {
    let of = |row: &SweepRow| {
        let (clients, writers, lock, per_second) = (row.clients, row.writers, row.lock, row.throughput);
        Throughput { clients, writers, lock, per_second }
    };
    let points: Vec<Throughput> = rows.iter().filter(|row| row.locks.number == 1).map(of).collect();
    repro::report::peers(&points)
}

/// The largest number of clients that have many locks by default: each of them creates its part of
/// every lock. Beyond it, locks that retry are also left out by default: most of the simulated
/// operations would be attempts that fail.
const MANY: u32 = 4096;

fn retries(lock: Competitor) -> bool {
    matches!(lock, Competitor::Peer(Peer::Spin) | Competitor::Ours(LockKind::BackOff))
}

fn plans(options: &Options) -> Vec<SweepPlan> {
    let mut usual = SweepPlan::usual(options.seed);
    if options.quick {
        usual.clients.truncate(1);
        usual.writers.truncate(1);
        usual.acquisitions = 256;
    }
    let clients = if options.clients.is_empty() { &usual.clients } else { &options.clients };
    let homes = if options.homes.is_empty() { &usual.locks } else { &options.homes };
    let plan = |(locks, clients): (Locks, u32)| SweepPlan {
        clients: vec![clients],
        locks: vec![locks],
        writers: if options.writers.is_empty() { usual.writers.clone() } else { options.writers.clone() },
        competitors: match &options.locks[..] {
            [] => usual.competitors.iter().copied().filter(|&lock| clients <= MANY || !retries(lock)).collect(),
            asked => asked.to_vec(),
        },
        acquisitions: options.acquisitions.unwrap_or(usual.acquisitions),
        within_each: options.within_each.map_or(usual.within_each, |us| Duration::from_micros(us.into())),
        seed: options.seed,
    };
    let of = |&locks: &Locks| clients.iter().map(move |&clients| (locks, clients));
    let few = |&(locks, clients): &(Locks, u32)| locks.number == 1 || clients <= MANY || !options.homes.is_empty();
    homes.iter().flat_map(of).filter(few).map(plan).collect()
}
