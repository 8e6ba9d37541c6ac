//! The cost of operations of the shared-memory fabric between two pinned ranks, compared with the
//! limits of the machine itself, measured in the same run (`cargo xtask bench`).
//!
//! `docs/evidence/performance.md` describes how a figure is made and how to read it.

mod bare_table;
mod cases;
mod ranks;
mod rows;
mod sampling;
mod table;

pub(crate) use ranks::JobPlan;
pub(crate) use sampling::{Form, Measured, Sample};

use crate::{
    output::Output,
    outside::{
        job::{self, Provider},
        placement::cores,
    },
    report::{Report, Started},
};
use cases::Case;
use clap::Args;
use ranks::Ranks;
use repro::progress::Progress;
use rows::Row;
use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

#[derive(Debug, Args)]
pub(crate) struct Options {
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
    #[command(flatten)]
    output: Output,
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
    drop(out);
    let output = options.output.open("bench")?;
    let report = measure(options, &chosen)?;
    output.write(&report, &table::terminal(&report), &table::markdown(&report))
}

#[cfg(test)]
pub(crate) fn has_case(name: &str) -> bool {
    cases::find(name).is_some()
}

/// Measures the cases of these names once, without a display of the progress.
pub(crate) fn sampled(names: &[&str], quick: bool, cores: &[usize]) -> Result<Vec<Measured>, Box<dyn Error>> {
    let chosen: Vec<_> = cases::all().filter(|case| names.contains(&case.name)).collect();
    let mut all = Vec::new();
    for plan in plans(&chosen, quick, None, cores) {
        all.extend(job::run(&plan, Provider::Shm, plan.ranks.size(), &Progress::silent(), |_| None)?.swap_remove(0));
    }
    Ok(all)
}

/// Returns the plans of the jobs that measure the cases.
fn plans(
    chosen: &[&'static Case],
    quick: bool,
    sample_ms: Option<u32>,
    cores: &[usize],
) -> impl Iterator<Item = JobPlan> {
    let plan = move |ranks: Ranks| {
        let of_job = chosen.iter().filter(|case| cases::ranks_of(case) == ranks);
        let cases: Vec<String> = of_job.map(|case| case.name.to_owned()).collect();
        (!cases.is_empty()).then(|| JobPlan { ranks, cases, quick, sample_ms, cores: cores.to_vec() })
    };
    Ranks::ALL.into_iter().filter_map(plan)
}

fn measure(options: &Options, chosen: &[&'static Case]) -> Result<Report<Row>, Box<dyn Error>> {
    let cores = cores(&options.cores)?;
    if cores.len() < 2 {
        eprintln!("warning: both ranks share a core, so every figure is of class `any` and says little");
    }
    if cfg!(debug_assertions) {
        eprintln!("warning: built without optimisation of a release; figures say little");
    }
    let started = Started::now(cores.clone())?;
    let rounds = if options.quick { 1 } else { usize::from(options.rounds) };
    let mut progress = Progress::stderr();
    progress.expect(chosen.len() * rounds);
    let mut measured = Vec::new();
    for round in 0..rounds {
        progress.say(&format!("round {} of {rounds}: {} cases", round + 1, chosen.len()));
        let mut before = round * chosen.len();
        for plan in plans(chosen, options.quick, options.sample, &cores) {
            let at = |number: u64| {
                let case = cases::all().nth(number.checked_sub(1)? as usize)?;
                let done = plan.cases.iter().position(|name| name == case.name)?;
                Some((before + done, case.what.to_owned()))
            };
            let mut of_ranks = job::run(&plan, options.fabric, plan.ranks.size(), &progress, at)?;
            measured.push(of_ranks.swap_remove(0));
            before += plan.cases.len();
        }
    }
    progress.finish();
    Ok(started.end(options.fabric.name(), rounds, options.quick, None, rows::rows(measured)))
}

/// Returns the cases selected by `only`; all if it is empty.
fn chosen(only: &[String]) -> Result<Vec<&'static Case>, String> {
    let named = |pattern: &str, case: &Case| match pattern.strip_suffix('*') {
        Some(start) => case.name.starts_with(start),
        None => case.name == pattern,
    };
    if let Some(unknown) = only.iter().find(|pattern| !cases::all().any(|case| named(pattern, case))) {
        return Err(format!("no case is named {unknown}; `--list` names them all"));
    }
    Ok(cases::all().filter(|case| only.is_empty() || only.iter().any(|pattern| named(pattern, case))).collect())
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
