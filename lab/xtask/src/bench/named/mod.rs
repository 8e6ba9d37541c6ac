//! `cargo xtask bench-named`: the lock by name compared with a robust mutex of pthread and the file
//! locks of the system, in one run: alone, contended, and after its holder was killed.

mod contestant;
mod system;
mod worker;

pub(crate) use worker::{WorkerOptions, be_worker};

use super::{
    command, cores,
    report::{self, Machine},
};
use crate::page;
use clap::Args;
use comfy_table::{CellAlignment, Table};
use contestant::Contestant;
use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use worker::{Role, Worker};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Cores to bind the processes to, in turn (default: the first two that are allowed).
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Numbers of processes that contend.
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [2, 4, 16], value_parser = clap::value_parser!(u16).range(2..=100))]
    processes: Vec<u16>,
    /// Number of repetitions of all measurements; medians count.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Time for which processes contend, in ms.
    #[arg(long, value_name = "MS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    length: u32,
    /// Number of times a holder is killed.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..))]
    kills: u16,
    /// Run for a few seconds as a smoke test; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
}

/// The measurements of one lock.
struct Row {
    contestant: Contestant,
    /// Nanoseconds per acquisition and release, uncontended.
    idle: Vec<f64>,
    /// The same with each number of processes, over all of them.
    contended: Vec<Vec<f64>>,
    /// Milliseconds from the signal that kills the holder until a waiting process has the lock.
    after_death: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    // Checked before the run, which takes a minute, not after it.
    let part = options.markdown.as_ref().map(|path| page::Part::of(path, "named")).transpose()?;
    let cores = cores(&options.cores)?;
    let mut machine = Machine::here(cores.clone());
    let (began, begun) = (SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(), Instant::now());
    let rows = measure(options, &cores)?;
    machine.load_after = report::load();
    writeln!(io::stdout(), "{}", page::terminal(table(options, &rows)))?;
    if let Some(part) = part {
        let text = format!(
            "`{}`, {}, {:.0} s, commit {}.\n{}, kernel {}, cores {:?}, {} repetitions of {} ms, {} kills.\n\
             Load average before the run {}, after it {}.\n\n{}",
            command(),
            report::date(began),
            begun.elapsed().as_secs_f64(),
            report::commit(),
            machine.processor,
            machine.kernel,
            machine.cores,
            options.repetitions,
            options.length,
            options.kills,
            machine.load_before,
            machine.load_after,
            page::markdown(table(options, &rows))
        );
        part.write(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options, cores: &[usize]) -> Result<Vec<Row>, Box<dyn Error>> {
    let (repetitions, length, kills) =
        if options.quick { (1, 30, 3) } else { (options.repetitions, options.length, options.kills) };
    let row = |contestant| Row {
        contestant,
        idle: Vec::new(),
        contended: vec![Vec::new(); options.processes.len()],
        after_death: Vec::new(),
    };
    let mut rows: Vec<Row> = Contestant::ALL.into_iter().map(row).collect();
    // In turn, so that changes of the machine's speed affect all.
    for _ in 0..repetitions {
        for row in &mut rows {
            row.idle.push(contend(row.contestant, 1, length / 2 + 1, cores)?);
            for (figures, &processes) in row.contended.iter_mut().zip(&options.processes) {
                figures.push(contend(row.contestant, processes, length, cores)?);
            }
        }
    }
    for _ in 0..kills {
        for row in rows.iter_mut().filter(|row| row.contestant.is_exclusive()) {
            row.after_death.push(kill(row.contestant, cores)?);
        }
    }
    Ok(rows)
}

/// Returns the nanoseconds between two acquisitions of the lock by any of `processes`.
fn contend(contestant: Contestant, processes: u16, milliseconds: u32, cores: &[usize]) -> io::Result<f64> {
    let place = contestant.place()?;
    let worker = |index: u16| {
        let core = cores.get(usize::from(index) % cores.len().max(1)).copied();
        Worker::start(&WorkerOptions { role: Role::Contend, contestant, place: place.path(), core, milliseconds })
    };
    let mut workers = (0..processes).map(worker).collect::<io::Result<Vec<_>>>()?;
    workers.iter_mut().try_for_each(Worker::is_ready)?;
    workers.iter_mut().try_for_each(Worker::go)?;
    let pairs = workers.iter_mut().map(Worker::figure).sum::<io::Result<u64>>()?;
    Ok(f64::from(milliseconds) * 1e6 / pairs.max(1) as f64)
}

/// Kills a holder for which another process waits. Returns the milliseconds until the other one has
/// the lock.
fn kill(contestant: Contestant, cores: &[usize]) -> io::Result<f64> {
    let place = contestant.place()?;
    let options = |role, core: usize| WorkerOptions {
        role,
        contestant,
        place: place.path(),
        core: cores.get(core).copied(),
        milliseconds: 0,
    };
    let mut holder = Worker::start(&options(Role::Hold, 0))?;
    holder.is_ready()?;
    let mut waiter = Worker::start(&options(Role::Wait, 1))?;
    waiter.is_ready()?;
    std::thread::sleep(Duration::from_millis(30));
    let killed = worker::now();
    holder.kill()?;
    Ok(waiter.figure()?.saturating_sub(killed) as f64 / 1e6)
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

fn table(options: &Options, rows: &[Row]) -> Table {
    let nanoseconds = |figures: &[f64]| match median(figures) {
        None => "–".to_owned(),
        Some(ns) if ns < 1000.0 => format!("{ns:.0} ns"),
        Some(ns) => format!("{:.2} µs", ns / 1000.0),
    };
    let mut header = vec!["lock".to_owned(), "alone".to_owned()];
    header.extend(options.processes.iter().map(|processes| format!("{processes} processes")));
    header.extend(["holder killed", "at most", "what the next one learns"].map(str::to_owned));
    let mut table = Table::new();
    table.set_header(header);
    for row in rows {
        let mut cells = vec![row.contestant.title().to_owned(), nanoseconds(&row.idle)];
        cells.extend(row.contended.iter().map(|figures| nanoseconds(figures)));
        let most = row.after_death.iter().copied().max_by(f64::total_cmp);
        for after in [median(&row.after_death), most] {
            cells.push(after.map_or("–".to_owned(), |ms| format!("{ms:.1} ms")));
        }
        cells.push(row.contestant.learns().to_owned());
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1).take(options.processes.len() + 3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
