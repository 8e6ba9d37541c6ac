//! `cargo xtask ofi`: the examples as programs of several nodes, over each provider of libfabric that
//! works between processes of one machine, started by each launcher that is installed here.
//!
//! All nodes are this machine: ranks use different names of it as nodes (`ONESIDED_NODE`), and
//! reach each other over its loopback. A success here proves nothing about a network.

mod bounded;
pub(crate) mod build;
mod combination;
mod example;
pub(crate) mod interrupt;
pub(crate) mod launcher;
mod report;
pub(crate) mod slurm;

pub(crate) use bounded::Ended;
pub(crate) use build::{built, examples, missing};
use evidence::page;
pub(crate) use example::{EXAMPLES, Example, QUICK};
pub(crate) use report::Outcome;

use bounded::run_within;
use clap::Args;
use combination::{Combination, PROVIDERS};
use core::time::Duration;
use interrupt::Interrupt;
use launcher::{LAUNCHERS, Launcher, Site};
use report::Run;
use std::{error::Error, io::Write, path::PathBuf, process::ExitCode};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// One example for each combination of provider, nodes and launcher.
    #[arg(long)]
    quick: bool,
    /// Only these examples.
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    /// Only these providers of libfabric.
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Only these launchers: onesided, openmpi, mpich, srun, srun-pmi2, srun-pmix.
    #[arg(long, value_name = "NAME")]
    launcher: Vec<String>,
    /// Time limit of each run, in seconds.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    within: u64,
    /// Print all runs as JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Write the tables into this file, in place of earlier ones.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(why) = build::missing() {
        println!("ofi: SKIPPED: {why}");
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(options)?;
    let names: Vec<&str> = chosen.examples.iter().map(|example| example.name).collect();
    let programs = build::examples(&names)?;
    let interrupt = Interrupt::listen()?;
    let folder = tempfile::Builder::new().prefix("onesided-ofi-").tempdir()?;
    let mut site = Site::new(folder.path(), programs)?;
    let runs = all(options, &chosen, &mut site, &interrupt);
    // Daemons end before their folder is removed.
    drop(site);
    folder.close()?;
    let runs = runs?;
    match (&options.markdown, options.json) {
        (Some(path), _) => {
            page::Part::of(path, "ofi")?.write(&report::markdown(&runs))?;
        }
        (None, true) => serde_json::to_writer_pretty(std::io::stdout(), &runs)?,
        (None, false) => write!(std::io::stdout(), "{}", report::terminal(&runs))?,
    }
    let failed = runs.iter().filter(|run| run.outcome == Outcome::Failed).count();
    eprintln!("ofi: {} runs, {failed} failed", runs.len());
    Ok(if failed == 0 && !interrupt.came() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The entries of each list that the options select.
struct Chosen {
    examples: Vec<&'static Example>,
    combinations: Vec<Combination>,
}

fn chosen(options: &Options) -> Result<Chosen, String> {
    let known =
        |what: &str, asked: &[String], names: &[&str]| match asked.iter().find(|name| !names.contains(&&***name)) {
            Some(name) => Err(format!("no {what} is called {name}; there are {}", names.join(", "))),
            None => Ok(()),
        };
    known("example", &options.example, &EXAMPLES.map(|example| example.name))?;
    known("provider", &options.provider, &PROVIDERS.map(|provider| provider.name))?;
    known("launcher", &options.launcher, &LAUNCHERS.map(Launcher::name))?;
    let asked = |names: &[String], name: &str| names.is_empty() || names.iter().any(|asked| asked == name);
    let quick = |example: &&Example| !options.quick || !options.example.is_empty() || example.name == QUICK;
    let examples = EXAMPLES.iter().filter(|example| asked(&options.example, example.name)).filter(quick).collect();
    let wanted =
        |it: &Combination| asked(&options.provider, it.provider.name) && asked(&options.launcher, it.launcher.name());
    Ok(Chosen { examples, combinations: combination::all().into_iter().filter(wanted).collect() })
}

fn all(options: &Options, chosen: &Chosen, site: &mut Site, interrupt: &Interrupt) -> Result<Vec<Run>, Box<dyn Error>> {
    let within = Duration::from_secs(options.within);
    let mut runs = Vec::new();
    for combination in &chosen.combinations {
        let before = runs.len();
        for example in &chosen.examples {
            if interrupt.came() {
                eprintln!("ofi: interrupted; what follows is what has run");
                return Ok(runs);
            }
            let run = one(combination, example, site, within, interrupt)?;
            if run.outcome == Outcome::Failed {
                eprintln!("{combination}: {} FAILED: {}", example.name, run.why);
            }
            runs.push(run);
        }
        eprintln!("{combination}: {}", report::in_short(&runs[before..]));
    }
    Ok(runs)
}

fn one(
    combination: &Combination,
    example: &Example,
    site: &mut Site,
    within: Duration,
    interrupt: &Interrupt,
) -> Result<Run, Box<dyn Error>> {
    let skipped = |why: String| Run::new(combination, example, Outcome::Skipped, why, Duration::ZERO);
    if let Some(why) = example.unfit_for(combination.launcher) {
        return Ok(skipped(why.to_owned()));
    }
    let command = match site.command(combination, example) {
        Ok(command) => command,
        Err(why) => return Ok(skipped(why)),
    };
    let ended = run_within(command, site.folder(), within, interrupt)?;
    if ended.status.is_none() && interrupt.came() {
        return Ok(skipped("interrupted".to_owned()));
    }
    let (outcome, why) = example.judge(&ended, within);
    Ok(Run::new(combination, example, outcome, why, ended.took))
}
