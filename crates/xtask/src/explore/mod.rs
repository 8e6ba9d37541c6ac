//! `cargo xtask explore`: the locks, persistent exchanges without queues, and global addresses, under
//! every delivery order, correct and with each of their steps done wrong.
//!
//! Programs, bounds and mutations are those of `onesided-checks`, the smallest of which are tests.
//! `docs/evidence/verification.md` says what is proven.

pub(crate) mod output;
mod row;

use crate::progress::Progress;
use checks::{
    acp, exchange,
    exploration::{Expected, Exploration, Size},
    fmpl, lock,
};
use clap::Args;
use output::Output;
use row::{Row, filled, summary};
use std::{error::Error, process::ExitCode, rc::Rc, time::Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only what takes less than some seconds each.
    #[arg(long)]
    quick: bool,
    /// Stop a case at so many states; each takes 16 to 40 bytes.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    states: u64,
    /// Only cases and mutations with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Show the timelines of counter-examples.
    #[arg(long)]
    timelines: bool,
    #[command(flatten)]
    output: Output,
}

/// Returns everything there is to explore.
fn explorations() -> Vec<Exploration> {
    let locks = lock::explorations().into_iter().flat_map(|(_, explorations)| explorations);
    let exchanges = exchange::CASES.iter().map(|case| {
        let size = if case.quick { Size::Quick } else { Size::Full };
        let expected = Expected::Exhausted { at_least: case.at_least };
        let name = format!("exchange: {}", case.name);
        Exploration::new(name, expected, move || exchange::explorer(case), exchange::job(*case)).of_size(size)
    });
    let mistaken = exchange::MISTAKES.iter().map(|mistaken| {
        let expected = Expected::Violated { saying: "", within: u64::MAX };
        let name = format!("exchange: {}", mistaken.name());
        let explorer = move || exchange::explorer(&mistaken.case);
        Exploration::new(name, expected, explorer, mistaken.job()).of_size(Size::Quick)
    });
    locks.chain(exchanges).chain(mistaken).chain(acp::explorations()).chain(fmpl::explorations()).collect()
}

fn explore(exploration: &Exploration, states: u64) -> Row {
    let progress = Rc::new(Progress::new(exploration.name()));
    let (start, watched) = (Instant::now(), progress.clone());
    let explored = exploration.explore(states, move |now| watched.look(now.states, now.transitions, now.depth));
    progress.end();
    Row::new(exploration, &explored, start.elapsed())
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let wanted = |exploration: &Exploration| {
        let named = options.only.iter().any(|part| exploration.name().contains(part));
        (exploration.size() < Size::Full || !options.quick) && (options.only.is_empty() || named)
    };
    let items: Vec<_> = explorations().into_iter().filter(wanted).collect();
    let names: Vec<_> = items.iter().map(Exploration::name).collect();
    if options.output.lists("case", &names)? {
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = items.iter().map(|exploration| explore(exploration, options.states)).collect();
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
