//! Operations beside those of the MPI libraries and the UCX of this machine, and whole programs beside the same programs
//! in C and MPI, in turn within one run (`cargo xtask peers`).

mod libraries;
mod programs;
mod samples;
mod works;

use crate::{
    foreign::{mpi, ucx},
    operations::{self, Measured},
    output::{Context, Output, Steps},
    outside::placement::{Class, cores},
    quantity::Unit,
    sheet::{Entry, Sheet, ns},
};
use clap::Args;
use libraries::Library;
use samples::Samples;
use std::{
    env,
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};
use works::{WORKS, Work};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A few samples of each, as a smoke test; the figures are not significant.
    #[arg(long)]
    quick: bool,
    /// Measure programs: the examples in this folder (`examples` beside this program) beside the same in C and MPI.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    programs: Option<Option<PathBuf>>,
    /// Runs of each side, in turn (3; of programs 7); their samples are merged.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Cores to bind ranks 0 and 1 to (default: the first two that are allowed).
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let cores = cores(&options.cores)?;
    let rounds = |usual| if options.quick { 1 } else { usize::from(options.rounds.unwrap_or(usual)) };
    if let Some(examples) = &options.programs {
        let examples = match examples {
            Some(examples) => examples.clone(),
            None => env::current_exe()?.with_file_name("examples"),
        };
        let programs = programs::Programs { examples, folder, cores, quick: options.quick, rounds: rounds(7) };
        return programs.run(&options.output);
    }
    let libraries = Library::all(folder.path())?;
    if !libraries.iter().any(Library::is_ucx) {
        writeln!(io::stdout(), "peers: SKIPPED: UCX: {}", ucx::NONE)?;
    }
    if libraries.iter().all(Library::is_ucx) {
        writeln!(io::stdout(), "peers: SKIPPED: MPI: {}", mpi::NONE)?;
    }
    if libraries.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let rounds = rounds(3);
    let notes = "Minima of the samples in which no rank was switched out. `ours / best` is beside the fastest library; the goal is ×1, and a verdict names the part of ours \
         that misses it.\n";
    let context = Context {
        cores: cores.clone(),
        rounds,
        notes: notes.to_owned(),
        ..Context::new("peers", "shm", options.quick)
    };
    options.output.sheets(context, |steps| {
        let (mut ours, mut theirs) = (Vec::new(), libraries.iter().map(|_| Samples::default()).collect::<Vec<_>>());
        for round in 1..=rounds {
            steps.expect(1 + libraries.len());
            measure(steps, round, options.quick, &cores, &libraries, &mut ours, &mut theirs)?;
        }
        Ok(vec![sheet(&ours, &libraries, &theirs)])
    })
}

/// Measures each side once.
fn measure(
    steps: &mut Steps,
    round: usize,
    quick: bool,
    cores: &[usize],
    libraries: &[Library],
    ours: &mut Vec<Measured>,
    theirs: &mut [Samples],
) -> Result<(), Box<dyn Error>> {
    steps.begin(format!("round {round}: onesided"));
    ours.extend(operations::sampled(&WORKS.each_ref().map(|work| work.case), quick, cores)?);
    for (library, theirs) in libraries.iter().zip(theirs) {
        steps.begin(format!("round {round}: {}", library.name));
        library.measure(quick, cores, theirs)?;
    }
    Ok(())
}

fn sheet(ours: &[Measured], libraries: &[Library], theirs: &[Samples]) -> Sheet {
    let names = libraries.iter().map(|library| library.name.clone());
    let columns = ["work", "class", "limit", "ours"].map(str::to_owned).into_iter().chain(names);
    let mut rows = Vec::new();
    for work in &WORKS {
        let classes: &[Class] = if work.shares_cores { &[Class::Any] } else { &Class::DISTANCES };
        for class in classes {
            rows.extend(row(work, *class, ours, theirs));
        }
    }
    judged("Beside other libraries", columns, rows)
}

/// A row, and our figure divided by the best of the others.
#[derive(Debug)]
struct Compared {
    entries: Vec<Entry>,
    ratio: Option<f64>,
    /// The part of ours that is at fault for a miss.
    part: &'static str,
}

/// Returns a table with a verdict on each row: the goal is at most the best of the others.
fn judged(title: &str, columns: impl Iterator<Item = String>, rows: Vec<Compared>) -> Sheet {
    let ratios = || rows.iter().filter_map(|row| row.ratio);
    let (all, met) = (ratios().count(), ratios().filter(|ratio| *ratio <= 1.0).count());
    let columns = columns.chain(["ours / best", "verdict"].map(str::to_owned));
    let mut sheet = Sheet::new(format!("{title}; {met} of {all} goals met"), columns);
    for Compared { mut entries, ratio, part } in rows {
        entries.push(Entry::figure(ratio, Unit::Times));
        entries.push(match ratio {
            None => Entry::None,
            Some(ratio) if ratio <= 1.0 => "met".into(),
            Some(_) => format!("MISSED: {part}").into(),
        });
        sheet.row(entries);
    }
    sheet
}

/// Compares a work; `None` if nothing of ours was measured at this distance.
fn row(work: &Work, class: Class, ours: &[Measured], theirs: &[Samples]) -> Option<Compared> {
    let of_work = ours.iter().filter(|measured| measured.name == work.case && measured.bytes == work.bytes);
    let forms: Vec<_> = of_work.filter_map(|measured| measured.forms.split_first()).collect();
    let own = forms.iter().filter_map(|(own, _)| own.least(class)).min_by(f64::total_cmp)?;
    let limit = forms.iter().flat_map(|(_, limits)| *limits).filter_map(|form| form.least(class));
    let limit = limit.min_by(f64::total_cmp);
    let others: Vec<Option<f64>> = theirs.iter().map(|samples| samples.least(work, class)).collect();
    let best = others.iter().flatten().copied().min_by(f64::total_cmp);
    let mut entries = vec![work.what.into(), class.name().into(), Entry::figure(limit, Unit::Nanoseconds), ns(own)];
    entries.extend(others.into_iter().map(|other| Entry::figure(other, Unit::Nanoseconds)));
    Some(Compared { entries, ratio: best.map(|best| own / best), part: work.part })
}
