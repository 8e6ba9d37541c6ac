//! `cargo xtask hosts`: programs on three hosts, over ssh and libfabric. The hosts are network
//! namespaces of this machine. In some runs a rank is killed, or a host disconnected.

mod job;
mod launcher;
mod losses;
mod network;

use crate::ofi;
use clap::Args;
use comfy_table::Table;
use evidence::page;
use job::Job;
use network::Network;
use serde::Serialize;
use std::{
    error::Error,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// The number of hosts.
const HOSTS: usize = 3;

/// The programs that run to their end: the number of ranks of each host, the name, its arguments,
/// and the expected output.
const PROGRAMS: [(usize, &str, &[&str], &str); 8] = [
    (2, "shared_counter", &[], "samples counted by copies, none lost"),
    (2, "heat_2d", &[], ""),
    (1, "ping_pong", &["--posted", "100"], "receives posted"),
    (2, "distributed_hashtable", &[], ""),
    (2, "window_lock", &[], ""),
    (2, "stencil_rma", &[], ""),
    (2, "word_count", &[], ""),
    (2, "matmul_summa", &[], ""),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Seconds of silence after which a rank counts as lost.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    lease: u32,
    /// Do only the runs whose names contain this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Print JSON at the end.
    #[arg(long)]
    json: bool,
}

/// One run.
#[derive(Debug, Serialize)]
struct Row {
    run: String,
    ranks: usize,
    seconds: f64,
    /// Milliseconds until the last survivor was notified of a loss.
    told_after_ms: Option<f64>,
    /// The reason for a failure.
    problem: Option<String>,
    note: String,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(obstacle) = network::obstacle().or_else(|| ofi::missing().map(str::to_owned)) {
        writeln!(io::stdout(), "skipped: {obstacle}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let programs = build()?;
    // An interrupt ends the current run, and then everything is removed.
    let stop: Arc<AtomicBool> = Arc::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let network = Network::of(HOSTS)?;
    let lease = Duration::from_secs(options.lease.into());
    let bed = Bed { network, programs, lease, stop };
    let mut rows = Vec::new();
    let mut row = |name: &str, ranks: usize, run: &dyn Fn(&Bed) -> Outcome| {
        if !name.contains(&options.only) || bed.is_stopped() {
            return;
        }
        eprintln!("{name} …");
        let begun = Instant::now();
        let ended = run(&bed);
        let (problem, good) = match ended {
            Ok(good) => (None, good),
            Err(error) => (Some(error.to_string()), Good::default()),
        };
        let seconds = begun.elapsed().as_secs_f64();
        let told_after_ms = good.told_after.map(|after| after.as_secs_f64() * 1e3);
        rows.push(Row { run: name.to_owned(), ranks, seconds, told_after_ms, problem, note: good.note });
    };
    for (slots, name, arguments, prints) in PROGRAMS {
        row(name, HOSTS * slots, &|bed| whole(bed, slots, name, arguments, prints));
    }
    row("a rank is killed", 6, &losses::killed);
    row("a host is cut off for less than the lease", 6, &losses::cut_shortly);
    row("a host is cut off", 6, &losses::cut);
    row("the launcher's host is cut off", 6, &launcher::cut);
    row("the launcher is killed", 6, &launcher::killed);
    row("after the host has healed", 6, &|bed| whole(bed, 2, "shared_counter", &[], "none lost"));
    let stopped = bed.is_stopped();
    drop(bed);
    report(&rows, options)?;
    let good = !stopped && rows.iter().all(|row| row.problem.is_none());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The environment of runs.
struct Bed {
    network: Network,
    programs: PathBuf,
    lease: Duration,
    stop: Arc<AtomicBool>,
}

impl Bed {
    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

type Outcome = Result<Good, Box<dyn Error>>;

/// The result of a successful run.
#[derive(Default)]
struct Good {
    told_after: Option<Duration>,
    note: String,
}

/// Runs a program to its end.
fn whole(bed: &Bed, slots: usize, name: &str, arguments: &[&str], prints: &str) -> Outcome {
    let mut job = Job::start(bed, slots, name, arguments)?;
    job.end(0, Duration::from_secs(120))?;
    if !job.printed(prints) {
        return Err(format!("it did not print `{prints}`: {}", job.text()).into());
    }
    Ok(Good::default())
}

/// Builds the programs; returns their directory.
fn build() -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--package", "onesided-examples", "--features", "onesided/ofi"]);
    for name in PROGRAMS.iter().map(|(_, name, ..)| *name).chain(["loss_delay"]) {
        cargo.args(["--example", name]);
    }
    if !cargo.current_dir(&root).status()?.success() {
        return Err("the programs can't be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("debug/examples"))
}

fn report(rows: &[Row], options: &Options) -> Result<(), Box<dyn Error>> {
    let mut table = Table::new();
    table.set_header(["run", "ranks", "s", "loss told after", "result"]);
    for row in rows {
        let told = row.told_after_ms.map_or_else(String::new, |ms| format!("{ms:.0} ms"));
        let result = match &row.problem {
            None if row.note.is_empty() => "passes".to_owned(),
            None => format!("passes: {}", row.note),
            Some(problem) => format!("FAILS: {problem}"),
        };
        table.add_row([row.run.clone(), row.ranks.to_string(), format!("{:.1}", row.seconds), told, result]);
    }
    writeln!(io::stdout(), "{HOSTS} hosts, lease {} s\n{}", options.lease, page::terminal(table))?;
    if options.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(rows)?)?;
    }
    Ok(())
}
