//! `cargo xtask explore`: the locks, and persistent exchanges without queues, under every delivery order, right and with each of their steps done wrong.
//!
//! Programs, bounds and mutations are those of `onesided-checks`, the smallest of which are tests. `docs/verification.md` says what is proven.

mod row;
mod table;

use crate::progress::Progress;
use checks::{
    exchange,
    exploration::{Expected, Exploration, Size},
    lock,
};
use clap::Args;
use row::Row;
use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    rc::Rc,
    time::Instant,
};

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
    /// Write the result as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Rewrite the part of this page between `<!-- begin explorer -->` and `<!-- end explorer -->`.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// List what would be explored.
    #[arg(long)]
    list: bool,
}

/// Everything there is to explore.
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
    locks.chain(exchanges).chain(mistaken).collect()
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
    let mut out = io::stdout().lock();
    if items.is_empty() {
        return Err("no case has such a name; --list shows them".into());
    }
    if options.list {
        for item in &items {
            writeln!(out, "{}", item.name())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = items.iter().map(|exploration| explore(exploration, options.states)).collect();
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&rows)?;
        if to_stdout { writeln!(out, "{json}")? } else { fs::write(path, json)? }
    }
    if !to_stdout {
        writeln!(out, "{}\n\n{}", crate::table::terminal(table::filled(&rows)), table::summary(&rows))?;
        if options.timelines {
            for row in rows.iter().filter(|row| !row.timeline.is_empty()) {
                writeln!(out, "\n{}: {}", row.name, row.what.as_deref().unwrap_or_default())?;
                row.timeline.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
            }
        }
    }
    if let Some(path) = &options.markdown {
        fs::write(path, crate::table::rewritten(&fs::read_to_string(path)?, "explorer", table::filled(&rows))?)?;
    }
    Ok(if rows.iter().all(|row| row.as_expected) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
