//! The lock by name compared with a robust mutex of pthread and the file locks of the system, in one
//! run: alone, contended, and after its holder was killed (`cargo xtask bench-named`).

mod contestant;
mod system;
mod worker;

pub(crate) use worker::{WORKER, WorkerOptions, be_worker};

use crate::{
    output::{Context, Output, Steps},
    outside::placement::cores,
    quantity::Unit,
    sheet::{Entry, Sheet},
    statistics::{greatest, median},
};
use clap::Args;
use contestant::Contestant;
use std::{error::Error, io, process::ExitCode, time::Duration};
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
    #[command(flatten)]
    output: Output,
}

/// The measurements of one lock.
struct Row {
    contestant: Contestant,
    /// Nanoseconds per acquisition and release, uncontended.
    idle: Vec<f64>,
    /// The same with each number of processes, over all of them.
    contended: Vec<Vec<f64>>,
    /// Nanoseconds from the signal that kills the holder until a waiting process has the lock.
    after_death: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let cores = cores(&options.cores)?;
    let (repetitions, length, kills) = effort(options);
    let notes = format!("{repetitions} repetitions of {length} ms, {kills} kills.\n");
    let context = Context::new("named", "processes", options.quick);
    let context = Context { cores: cores.clone(), rounds: repetitions.into(), notes, ..context };
    options.output.sheets(context, |steps| Ok(vec![sheet(options, &measure(options, &cores, steps)?)]))
}

/// Returns the number of repetitions, the length of each in ms, and the number of kills.
fn effort(options: &Options) -> (u16, u32, u16) {
    if options.quick { (1, 30, 3) } else { (options.repetitions, options.length, options.kills) }
}

fn measure(options: &Options, cores: &[usize], steps: &mut Steps) -> Result<Vec<Row>, Box<dyn Error>> {
    let (repetitions, length, kills) = effort(options);
    let row = |contestant| Row {
        contestant,
        idle: Vec::new(),
        contended: vec![Vec::new(); options.processes.len()],
        after_death: Vec::new(),
    };
    let mut rows: Vec<Row> = Contestant::ALL.into_iter().map(row).collect();
    // In turn, so that changes of the machine's speed affect all.
    steps.expect(usize::from(repetitions) * rows.len() + 1);
    for repetition in 1..=repetitions {
        for row in &mut rows {
            steps.begin(format_args!("repetition {repetition}, {}", row.contestant.title()));
            row.idle.push(contend(row.contestant, 1, length / 2 + 1, cores)?);
            for (figures, &processes) in row.contended.iter_mut().zip(&options.processes) {
                figures.push(contend(row.contestant, processes, length, cores)?);
            }
        }
    }
    steps.begin(format_args!("{kills} kills"));
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

/// Kills a holder for which another process waits. Returns the nanoseconds until the other one has
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
    Ok(waiter.figure()?.saturating_sub(killed) as f64)
}

fn sheet(options: &Options, rows: &[Row]) -> Sheet {
    let mut columns = vec!["lock".to_owned(), "alone".to_owned()];
    columns.extend(options.processes.iter().map(|processes| format!("{processes} processes")));
    columns.extend(["holder killed", "at most", "what the next one learns"].map(str::to_owned));
    let mut sheet =
        Sheet::new("An acquisition and release, of any process; until another has the lock of a dead one", columns);
    let ns = |figure| Entry::figure(figure, Unit::Nanoseconds);
    for row in rows {
        let mut entries = vec![Entry::from(row.contestant.title()), ns(median(row.idle.clone()))];
        entries.extend(row.contended.iter().map(|figures| ns(median(figures.clone()))));
        entries.extend([ns(median(row.after_death.clone())), ns(greatest(row.after_death.iter().copied()))]);
        entries.push(row.contestant.learns().into());
        sheet.row(entries);
    }
    sheet
}
