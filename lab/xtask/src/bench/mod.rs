//! `cargo xtask bench`: the cost of operations of the shared-memory fabric between two pinned
//! ranks, compared with the limits of the machine itself, measured in the same run.
//!
//! `docs/evidence/performance.md` describes how a figure is made and how to read it.

mod bare;
mod bare_table;
mod cases;
pub(crate) mod contention;
mod futex;
mod job;
mod limit;
mod lines;
pub(crate) mod named;
pub(crate) mod peers;
mod placement;
mod progress;
mod rendezvous;
pub(crate) mod report;
mod rows;
mod sampling;
mod table;

use crate::page;
use cases::Case;
use clap::Args;
use job::{Measurement, Provider, Ranks};
use progress::Progress;
use report::{Machine, Report, Run};
use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write the run as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// Measure only these cases; a name that ends with `*` selects all cases that begin so.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Run for a few seconds as a smoke test of the harness; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Fabric of the ranks.
    #[arg(long, value_enum, default_value = "shm")]
    fabric: Provider,
    /// Jobs in a row; their samples are merged. More jobs cover more of the machine's variation.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Length of a sample, in ms (default 0.25): long ones for a profiler.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sample: Option<u32>,
    /// Cores to bind ranks 0 and 1 to (default: the first two that are allowed).
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    /// List the cases.
    #[arg(long)]
    list: bool,
    /// Measure nothing: compare two files that --json wrote, row by row.
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2)]
    compare: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RankOptions {
    ranks: Ranks,
    plan: String,
}

pub(crate) fn run_rank(options: &RankOptions) -> Result<ExitCode, Box<dyn Error>> {
    job::be_rank(options.ranks, &options.plan)
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = io::stdout().lock();
    if let [before, after] = &options.compare[..] {
        write!(out, "{}", table::compare(before, after)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(&options.only)?;
    if options.list {
        for case in chosen {
            writeln!(out, "{:22} {}", case.name, case.what)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Checked before the run, which takes a minute, not after it.
    let part = options.markdown.as_ref().map(|path| page::Part::of(path, "bench")).transpose()?;
    let report = measure(options, &chosen)?;
    if let Some(part) = part {
        part.write(&table::markdown(&report))?;
    }
    match &options.json {
        Some(path) if path.as_os_str() == "-" => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        Some(path) => {
            fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
            write!(out, "{}", table::terminal(&report))?;
        }
        None => write!(out, "{}", table::terminal(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options, chosen: &[&'static Case]) -> Result<Report, Box<dyn Error>> {
    let cores = cores(&options.cores)?;
    if cores.len() < 2 {
        eprintln!("warning: both ranks share a core, so every figure is of class `any` and says little");
    }
    if cfg!(debug_assertions) {
        eprintln!("warning: built without optimisation of a release; figures say little");
    }
    let mut machine = Machine::here(cores.clone());
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let begun = Instant::now();
    let rounds = if options.quick { 1 } else { usize::from(options.rounds) };
    let progress = Progress::stderr(chosen.len() * rounds);
    let mut measured = Vec::new();
    for round in 0..rounds {
        progress.say(&format!("round {} of {rounds}: {} cases", round + 1, chosen.len()));
        let mut before = round * chosen.len();
        for ranks in Ranks::ALL {
            let of_job = chosen.iter().filter(|case| cases::ranks_of(case) == ranks);
            let cases: Vec<String> = of_job.map(|case| case.name.to_owned()).collect();
            if !cases.is_empty() {
                let (quick, sample_ms, cores) = (options.quick, options.sample, cores.clone());
                let job = Measurement { ranks, provider: options.fabric, cases, quick, sample_ms, cores };
                measured.push(job::run(&job, before, &progress)?);
                before += job.cases.len();
            }
        }
    }
    progress.end();
    machine.load_after = report::load();
    let run = Run {
        command: command(),
        fabric: options.fabric.name().to_owned(),
        rounds,
        quick: options.quick,
        commit: report::commit(),
        date: report::date(began),
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok(Report { schema: report::SCHEMA, machine, run, rows: rows::rows(measured) })
}

/// Returns this command as it was typed, without `--json`, which does not affect the figures.
fn command() -> String {
    let mut args = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    let mut words = vec!["cargo".to_owned(), "xtask".to_owned()];
    while let Some(arg) = args.next() {
        if arg == "--json" {
            args.next();
        } else if !arg.starts_with("--json=") {
            words.push(arg);
        }
    }
    words.join(" ")
}

/// Returns the cases selected by `only`; all if it is empty.
fn chosen(only: &[String]) -> Result<Vec<&'static Case>, String> {
    let named = |pattern: &str, case: &Case| match pattern.strip_suffix('*') {
        Some(start) => case.name.starts_with(start),
        None => case.name == pattern,
    };
    if let Some(unknown) = only.iter().find(|pattern| !cases::all().any(|case| named(pattern, case))) {
        return Err(format!("no case is named {unknown}; `cargo xtask bench --list` names them all"));
    }
    Ok(cases::all().filter(|case| only.is_empty() || only.iter().any(|pattern| named(pattern, case))).collect())
}

/// Returns the cores for ranks 0 and 1: those requested, otherwise the first that are allowed.
fn cores(asked: &[usize]) -> Result<Vec<usize>, Box<dyn Error>> {
    let allowed = placement::allowed_cores()?;
    match asked {
        [] => Ok(allowed.into_iter().take(2).collect()),
        [a, b] if a != b => match asked.iter().find(|core| !allowed.contains(core)) {
            Some(core) => Err(format!("--cores: core {core} is not among those allowed, {allowed:?}").into()),
            None => Ok(asked.to_vec()),
        },
        _ => Err("--cores needs two different cores".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_patterns_find_them() {
        let mut names: Vec<_> = cases::all().map(|case| case.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let of = |only: &[&str]| chosen(&only.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]).unwrap().len(), names.len());
        assert_eq!(of(&["put"]).unwrap().len(), 1);
        assert!(of(&["lock-*"]).unwrap().len() >= 2);
        assert!(of(&["put", "nonsense"]).is_err());
    }
}
