//! `cargo xtask explore`: the locks, persistent exchanges without queues, and global addresses,
//! under every delivery order, correct and with each of their steps mutated.
//!
//! Programs, bounds and mutants are those of `onesided-checks`, the smallest of which are tests.
//! `docs/evidence/verification.md` lists the proven properties.

pub(crate) mod output;
mod row;

use crate::progress::Progress;
use checks::{
    exploration::{Exploration, Size},
    explorations,
};
use clap::Args;
use core::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use indicatif::{MultiProgress, ProgressDrawTarget};
use output::Output;
use row::{Row, filled, summary};
use std::{error::Error, process::ExitCode, rc::Rc, thread, time::Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only explorations that take less than some seconds each.
    #[arg(long)]
    quick: bool,
    /// Over network interfaces that acknowledge operations before their effects are visible.
    #[arg(long)]
    acknowledged: bool,
    /// Leave out the explorations that `cargo test` runs (with a fortieth of the random runs).
    #[arg(long)]
    untested: bool,
    /// Stop a case at this number of states; each takes 16 to 40 bytes.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    states: u64,
    /// Number of cases to explore at a time; the number of CPUs if 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Only cases and mutants with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Show the timelines of counter-examples.
    #[arg(long)]
    timelines: bool,
    #[command(flatten)]
    output: Output,
}

fn explore(exploration: &Exploration, states: u64, bars: &MultiProgress) -> Row {
    let progress = Rc::new(Progress::among(bars, exploration.name()));
    let (start, watched) = (Instant::now(), progress.clone());
    let explored = exploration.explore(states, move |now| watched.look(now.states, now.transitions, now.depth));
    progress.end();
    Row::new(exploration, &explored, start.elapsed())
}

/// Returns the explorations that the options select.
fn wanted(options: &Options) -> Vec<Exploration> {
    let wanted = |exploration: &Exploration| {
        let named = options.only.iter().any(|part| exploration.name().contains(part));
        (exploration.size() < Size::Full || !options.quick)
            && !(options.untested && exploration.is_tested())
            && (options.only.is_empty() || named)
    };
    let selected = explorations().into_iter().filter(wanted);
    selected.map(|job| if options.acknowledged { job.acknowledged() } else { job }).collect()
}

/// Explores all of them, some at a time; returns their rows in order.
fn explored(options: &Options, cases: usize) -> Vec<Row> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = if options.jobs == 0 { cpus } else { options.jobs };
    let (next, bars) = (&AtomicUsize::new(0), &MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
    // Explorations stay on their threads, so each thread has its own.
    let some = || {
        let items = wanted(options);
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|at| *at < items.len()));
        mine.map(|at| (at, explore(&items[at], options.states, bars))).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(cases)).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a case panicked")).collect()
    });
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let items = wanted(options);
    let names: Vec<_> = items.iter().map(Exploration::name).collect();
    if options.output.lists("case", &names, "explorer")? {
        return Ok(ExitCode::SUCCESS);
    }
    let rows = explored(options, items.len());
    options.output.write("explorer", &rows, || filled(&rows))?;
    if !options.output.is_json() {
        println!("\n{}", summary(&rows));
        if options.timelines {
            for row in rows.iter().filter(|row| !row.timeline.is_empty()) {
                println!("\n{}: {}", row.name, row.what.as_deref().unwrap_or_default());
                row.timeline.iter().for_each(|line| println!("  {line}"));
            }
        }
    }
    Ok(if rows.iter().all(|row| row.as_expected) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use checks::explorations;

    /// No job relies on atomics being atomic with respect to puts and stores.
    #[test]
    fn no_job_needs_coherent_atomics() {
        let all = explorations();
        assert!(all.len() > 500, "{}", all.len());
        let needing = all.iter().filter(|exploration| exploration.promises_coherence());
        assert_eq!(needing.map(|exploration| exploration.name()).collect::<Vec<_>>(), [""; 0]);
    }
}
