//! `cargo xtask twin`: the explicit-state models of the locks with queues, searched to the last state.
//!
//! `docs/verification.md` says what a model is, and how the locks' tests check it against the code.

mod row;
mod table;

use crate::progress::Progress;
use clap::Args;
use row::Row;
use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};
use twin::{Case, Lock, Search};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only locks with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    lock: Vec<String>,
    /// Only jobs with one of these in their names, as R2W2x2: two readers, two writers, two rounds.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    case: Vec<String>,
    /// Search each job twice: the second time nothing happens at once, every move is one of its own, and there are some five times as many states.
    #[arg(long)]
    apart: bool,
    /// Stop at so many states; each takes 17 to 34 bytes, and half as much again while there is not enough room.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    states: u64,
    /// Write the result as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Rewrite the part of this page between `<!-- begin twin -->` and `<!-- end twin -->`.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// List what would be searched.
    #[arg(long)]
    list: bool,
}

fn wanted(parts: &[String], name: &str) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

fn search(lock: Lock, case: Case, apart: bool, options: &Options) -> Row {
    let name = format!("{}: {}", lock.name(), case.name);
    let progress = Progress::new(&name);
    let (job, start) = (case.of(lock), Instant::now());
    let told = |now: &twin::Progress| progress.look(now.states, now.transitions, now.depth);
    let search = Search::new(&job).limit(options.states).watch(told);
    let report = if apart { search.apart() } else { search }.run();
    progress.end();
    Row::new(name, apart, &report, start.elapsed())
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let locks = Lock::ALL.into_iter().filter(|lock| wanted(&options.lock, lock.name()));
    let cases = || Case::ALL.into_iter().filter(|case| wanted(&options.case, case.name));
    let items: Vec<_> = locks.flat_map(|lock| cases().map(move |case| (lock, case))).collect();
    let mut out = io::stdout().lock();
    if items.is_empty() {
        return Err("no lock or job has such a name; --list shows them".into());
    }
    if options.list {
        for (lock, case) in &items {
            writeln!(out, "{}: {}", lock.name(), case.name)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let ways: &[bool] = if options.apart { &[false, true] } else { &[false] };
    let searched = |(lock, case)| ways.iter().map(move |apart| search(lock, case, *apart, options));
    let rows: Vec<_> = items.into_iter().flat_map(searched).collect();
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&rows)?;
        if to_stdout { writeln!(out, "{json}")? } else { fs::write(path, json)? }
    }
    if !to_stdout {
        writeln!(out, "{}", crate::page::terminal(table::filled(&rows)))?;
    }
    if let Some(path) = &options.markdown {
        fs::write(
            path,
            crate::page::rewritten(
                &fs::read_to_string(path)?,
                crate::page::named("twin"),
                &crate::page::markdown(table::filled(&rows)),
            )?,
        )?;
    }
    Ok(if rows.iter().all(|row| row.verdict != "broken") { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
