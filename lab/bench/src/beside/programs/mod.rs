//! Whole programs: our examples beside the same programs in C and MPI.
//!
//! Each run of a program checks its result against a sequential computation, and gives one time. Both sides run on the
//! same cores, in turn.

mod time;
mod works;

use super::{Compared, judged};
use crate::{
    foreign::{lines_of::lines_of, mpi},
    output::{Context, Output, Steps},
    quantity::Unit,
    sheet::{Entry, Sheet, ns},
    statistics::least,
};
use std::{
    error::Error,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};
use tempfile::TempDir;
use time::time_in;
use works::{PROGRAMS, Program};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The ranks of each job.
const RANKS: usize = 2;

/// A measurement of programs.
#[derive(Debug)]
pub(super) struct Programs {
    /// The folder of our examples.
    pub(super) examples: PathBuf,
    /// The folder in which the programs in C are compiled.
    pub(super) folder: TempDir,
    pub(super) cores: Vec<usize>,
    pub(super) quick: bool,
    pub(super) rounds: usize,
}

/// A program of one side, and its times.
#[derive(Debug)]
struct Side {
    program: PathBuf,
    times: Vec<f64>,
}

impl Side {
    fn new(program: PathBuf) -> Self {
        Side { program, times: Vec::new() }
    }

    /// Runs the program once.
    fn take(&mut self, mut command: Command) -> Result<()> {
        let named = |error: &dyn core::fmt::Display| format!("{}: {error}", self.program.display());
        command.env_remove("RUST_BACKTRACE");
        let lines = lines_of(command).map_err(|error| named(&error))?;
        let time = lines.iter().find_map(|(line, _)| time_in(line));
        self.times.push(time.ok_or_else(|| named(&"no time is printed"))?);
        Ok(())
    }
}

impl Programs {
    /// Measures all programs and writes the table.
    ///
    /// # Errors
    /// An example is not built; a program fails, hangs or has a wrong result; the output cannot be written.
    pub(super) fn run(self, output: &Output) -> Result<ExitCode> {
        let libraries = mpi::Library::all();
        if libraries.is_empty() {
            writeln!(io::stdout(), "peers --programs: SKIPPED: {}", mpi::NONE)?;
            return Ok(ExitCode::SUCCESS);
        }
        let notes = "Minima of whole runs of two ranks, each of which checked its result against a sequential computation. \
                     `ours / best` is beside the fastest library; the goal is ×1, and a verdict names the part of \
                     ours that misses it.\n";
        let context = Context {
            cores: self.cores.clone(),
            rounds: self.rounds,
            notes: notes.to_owned(),
            ..Context::new("peers-programs", "shm", self.quick)
        };
        output.sheets(context, |steps| Ok(vec![self.measure(steps, &libraries)?]))
    }

    fn measure(&self, steps: &mut Steps, libraries: &[mpi::Library]) -> Result<Sheet> {
        let mut sides = Vec::new();
        for program in &PROGRAMS {
            sides.push(self.sides(program, libraries)?);
        }
        for round in 1..=self.rounds {
            steps.expect(PROGRAMS.len());
            for (program, (ours, theirs)) in PROGRAMS.iter().zip(&mut sides) {
                steps.begin(format!("round {round}: {}", program.what));
                ours.take(self.ours(program, &ours.program))?;
                for (library, side) in libraries.iter().zip(theirs) {
                    side.take(self.theirs(program, library, &side.program))?;
                }
            }
        }
        Ok(sheet(&sides, libraries))
    }

    /// Returns our program, and that of each library.
    fn sides(&self, program: &Program, libraries: &[mpi::Library]) -> Result<(Side, Vec<Side>)> {
        let ours = self.examples.join(program.example);
        if !ours.is_file() {
            return Err(format!("{} is not built; `cargo xtask peers --programs` builds it", ours.display()).into());
        }
        let compiled = |library: &mpi::Library| library.compiled(&program.source, self.folder.path()).map(Side::new);
        Ok((Side::new(ours), libraries.iter().map(compiled).collect::<Result<_>>()?))
    }

    fn ours(&self, program: &Program, path: &Path) -> Command {
        let mut command = Command::new("taskset");
        let cores = self.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        command.args(["--cpu-list", &cores]).arg(path).args(["--ranks", &RANKS.to_string(), "--bind", "core"]);
        command.args(program.flags);
        for (option, number) in program.options.iter().zip(program.numbers(self.quick)) {
            command.args([*option, &number.to_string()]);
        }
        command
    }

    fn theirs(&self, program: &Program, library: &mpi::Library, path: &Path) -> Command {
        let mut command = library.unbound(RANKS, path);
        command.arg(self.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        command.args(program.numbers(self.quick).iter().map(u32::to_string));
        command
    }
}

fn sheet(sides: &[(Side, Vec<Side>)], libraries: &[mpi::Library]) -> Sheet {
    let names = libraries.iter().map(|library| library.name.clone());
    let columns = ["program", "a", "ours"].map(str::to_owned).into_iter().chain(names);
    let mut rows = Vec::new();
    for (program, (ours, theirs)) in PROGRAMS.iter().zip(sides) {
        let Some(own) = least(ours.times.iter().copied()) else { continue };
        let theirs: Vec<_> = theirs.iter().map(|side| least(side.times.iter().copied())).collect();
        let best = least(theirs.iter().flatten().copied());
        let mut entries = vec![program.what.into(), program.unit.into(), ns(own)];
        entries.extend(theirs.into_iter().map(|time| Entry::figure(time, Unit::Nanoseconds)));
        rows.push(Compared { entries, ratio: best.map(|best| own / best), part: program.part });
    }
    judged("Programs beside MPI", columns, rows)
}
