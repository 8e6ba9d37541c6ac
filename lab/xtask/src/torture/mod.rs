//! `cargo xtask torture`: kills, signals, exhausted resources and wrong arguments, as one seeded
//! command. `docs/evidence/verification.md` describes the cases and expectations of each campaign.

mod arguments;
mod cgroup;
mod draw;
mod environment;
mod fault;
mod kills;
mod limits;
mod resources;
mod run;
mod signals;

use crate::ofi::interrupt::Interrupt;
use clap::{Args, ValueEnum};
use comfy_table::Table;
use environment::Environment;
use evidence::page;
use fault::{Fault, Outcome, Sums};
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use limits::{LimitOptions, be_limited};
use serde::Serialize;
use std::{
    collections::BTreeSet,
    error::Error,
    io::{IsTerminal, Write},
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Instant, SystemTime},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Draws victims, moments and limits; by the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// A few cases of each campaign: within 40 s.
    #[arg(long)]
    quick: bool,
    /// Only these campaigns.
    #[arg(long, value_enum, value_name = "CAMPAIGN", num_args = 1..)]
    only: Vec<Campaign>,
    /// Cases of a campaign, instead of all, or of 1000 kills.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cases: Option<u32>,
    /// Only the case of this number.
    #[arg(long, value_name = "N", conflicts_with_all = ["cases", "quick"])]
    case: Option<usize>,
    /// Use the existing programs without building them.
    #[arg(long)]
    built: bool,
    /// Number of cases to try at a time; the number of CPUs if 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Print each case.
    #[arg(long)]
    verbose: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Write the tables into this file, in place of earlier ones.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
}

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Campaign {
    Kills,
    Signals,
    Resources,
    Arguments,
}

impl Campaign {
    fn name(self) -> &'static str {
        match self {
            Campaign::Kills => "kills",
            Campaign::Signals => "signals",
            Campaign::Resources => "resources",
            Campaign::Arguments => "arguments",
        }
    }

    /// Returns the number of cases.
    fn all(self) -> usize {
        match self {
            Campaign::Kills => 1000,
            Campaign::Signals => signals::all(),
            Campaign::Resources => resources::all(),
            Campaign::Arguments => arguments::all(),
        }
    }

    /// Returns the number of cases of `--quick`.
    fn few(self) -> usize {
        match self {
            Campaign::Kills => 24,
            Campaign::Signals => 14,
            Campaign::Resources => 14,
            Campaign::Arguments => 40,
        }
    }

    fn case(self, environment: &Environment, number: usize) -> Outcome {
        let random = draw::of(environment.seed, self.name(), number);
        let tried = match self {
            Campaign::Kills => kills::case(environment, random),
            Campaign::Signals => signals::case(environment, number, random),
            Campaign::Resources => resources::case(environment, number, random),
            Campaign::Arguments => arguments::case(environment, number),
        };
        tried.unwrap_or_else(|error| {
            let faults = vec![Fault::Wrong(format!("the case can't be tried: {error}"))];
            Outcome { faults, ..Outcome::of(format!("case {number}")) }
        })
    }
}

#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    seconds: f64,
    interrupted: bool,
    campaigns: Vec<Sums>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let by_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or_else(by_clock);
    if options.case.is_some() && options.only.len() != 1 {
        return Err("--case needs --only with one campaign".into());
    }
    eprintln!("torture: seed {seed}");
    let (environment, interrupt) = (Environment::new(seed, options.built)?, Interrupt::listen()?);
    let begun = Instant::now();
    let mut campaigns = Vec::new();
    for campaign in Campaign::value_variants() {
        if options.only.is_empty() || options.only.contains(campaign) {
            campaigns.push(waged(*campaign, &environment, options, &interrupt));
        }
    }
    let (seconds, interrupted) = (begun.elapsed().as_secs_f64(), interrupt.came());
    let report = Report { seed, seconds, interrupted, campaigns };
    shown(&report, options)?;
    let good = !interrupted && report.campaigns.iter().all(Sums::is_good);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the numbers of the cases to try, spread evenly over all of them if only some are
/// requested.
fn chosen(campaign: Campaign, options: &Options) -> Vec<usize> {
    if let Some(case) = options.case {
        return vec![case];
    }
    let all = campaign.all();
    let cases = match options.cases {
        Some(cases) => cases as usize,
        None if options.quick => campaign.few(),
        None => all,
    };
    // Kills are drawn; the others are enumerated, once.
    let cases = if campaign == Campaign::Kills { cases } else { cases.min(all) };
    (0..cases).map(|case| if cases < all { case * all / cases } else { case }).collect()
}

/// Tries the cases of a campaign, some at a time.
fn waged(campaign: Campaign, environment: &Environment, options: &Options, interrupt: &Interrupt) -> Sums {
    let (cases, names) = (chosen(campaign, options), run::shared_memory_names());
    let jobs = match options.jobs {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        jobs => jobs,
    };
    let bar = bar(campaign, cases.len());
    let sums = Mutex::new(Sums { campaign: campaign.name(), ..Sums::default() });
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs.min(cases.len()) {
            scope.spawn(|| {
                while let Some(&case) = cases.get(next.fetch_add(1, Relaxed))
                    && !interrupt.came()
                {
                    let outcome = campaign.case(environment, case);
                    let told = told(campaign, case, &outcome, options, environment.seed);
                    bar.suspend(|| eprint!("{told}"));
                    bar.inc(1);
                    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                    sums.add(case, outcome, replay(campaign, case, environment.seed));
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let left: BTreeSet<String> = run::shared_memory_names().difference(&names).cloned().collect();
    if !left.is_empty() {
        let faults = vec![Fault::Leak(format!("in /dev/shm: {left:?}"))];
        let outcome = Outcome { faults, ..Outcome::of("the whole campaign".to_owned()) };
        let again = format!("cargo xtask torture --only {} --seed {} --jobs 1", campaign.name(), environment.seed);
        sums.add(0, outcome, again);
    }
    sums.failures.sort_by_key(|failure| failure.case);
    sums
}

fn replay(campaign: Campaign, case: usize, seed: u64) -> String {
    format!("cargo xtask torture --only {} --seed {seed} --case {case}", campaign.name())
}

/// Returns the lines about a case: its faults, or everything.
fn told(campaign: Campaign, case: usize, outcome: &Outcome, options: &Options, seed: u64) -> String {
    let mut lines = String::new();
    let ended = match &outcome.skipped {
        Some(why) => format!("skipped: {why}"),
        None if outcome.faults.is_empty() => "passes".to_owned(),
        None => "FAILS".to_owned(),
    };
    if options.verbose || options.case.is_some() || !outcome.faults.is_empty() {
        lines.push_str(&format!("{} {case}: {ended}: {}\n", campaign.name(), outcome.what));
    }
    for fault in &outcome.faults {
        lines.push_str(&format!("  {}\n", fault.in_words()));
    }
    if !outcome.faults.is_empty() {
        lines.push_str(&format!("  again: {}\n", replay(campaign, case, seed)));
    }
    lines
}

fn bar(campaign: Campaign, cases: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left");
    let bar = ProgressBar::new(cases as u64).with_message(campaign.name());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    let names = ["campaign", "tried", "survived", "hangs", "leaks", "wrong codes", "messages without a name"];
    table.set_header(names.into_iter().chain(["wrong results", "survivors", "longest, ms", "skipped"]));
    for sums in &report.campaigns {
        let skipped = sums.skipped.values().sum();
        let numbers = [sums.tried, sums.survived, sums.hangs, sums.leaks, sums.wrong_codes, sums.nameless];
        let more = [sums.wrong_results, sums.survivors, sums.longest_ms as usize, skipped];
        let numbers = numbers.into_iter().chain(more).map(|number| number.to_string());
        table.add_row([sums.campaign.to_owned()].into_iter().chain(numbers));
    }
    table
}

fn shown(report: &Report, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(report)?)?;
    } else {
        writeln!(out, "{}", page::terminal(table(report)))?;
        for sums in &report.campaigns {
            for (why, cases) in &sums.skipped {
                writeln!(out, "SKIPPED: {cases} {} cases: {why}", sums.campaign)?;
            }
        }
        writeln!(out, "seed {}, {:.0} s", report.seed, report.seconds)?;
    }
    if let Some(path) = &options.markdown {
        write_page(path, report)?;
    }
    Ok(())
}

fn write_page(path: &Path, report: &Report) -> Result<(), Box<dyn Error>> {
    let part = format!("Seed {}, {:.0} s.\n\n{}", report.seed, report.seconds, page::markdown(table(report)));
    page::Part::of(path, "torture")?.write(&part)
}
