//! The command line.

mod goal;

pub(crate) use goal::Goal;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use repro::{figures::Paper, lock_paper::Shapes};
use std::{
    error::Error,
    ffi::OsString,
    io::{self, Write as _},
    num::NonZeroUsize,
    path::PathBuf,
};
use tofu2_sim::shm::{Bind, SegmentBytes, StuckAfter};

/// One-sided communication: start ranks, reproduce published figures.
#[derive(Debug, Parser)]
#[command(name = "onesided", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Reproduce the figures of a paper in virtual time.
    ///
    /// Ends with a table: published value, ours, the deviation, the prediction of a trivial model,
    /// and whether a prediction is within its bound.
    Reproduce(Reproduce),
    /// Start ranks of a program as processes of this machine, over shared memory or a simulated network.
    ///
    /// Ends with the exit code of the first rank that failed, 0 if none did; or with the code with
    /// which a rank aborted the job, 1 if no process can have that. Ctrl-C ends all ranks.
    Run(Run),
    /// Replay a schedule of messages (GOAL, as LogGOPSim reads it) in virtual time, by the LogGPS model.
    ///
    /// Prints when ranks finish. Also generates schedules, and converts them.
    Goal(Goal),
    /// Describe this machine and the modelled ones.
    Info(Info),
    /// Write the completions of this command for a shell to standard output.
    ///
    /// For example: onesided completions bash > ~/.local/share/bash-completion/completions/onesided
    Completions(Completions),
    /// Write the manual page of this command to standard output, or those of all subcommands to a
    /// directory.
    ///
    /// For example: onesided man ~/.local/share/man/man1
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory for the pages onesided.1, onesided-run.1 and so on; it is created if it does
    /// not exist.
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Paper whose figures to reproduce: lock, acp, prdma, fmpl or xmp. Default: all five.
    #[arg(long, value_name = "NAME", value_parser = paper)]
    pub(crate) paper: Option<Paper>,
    /// Job shapes for the figures that depend on arbitration.
    #[arg(long, value_enum, default_value_t = ShapeChoice::One)]
    pub(crate) shapes: ShapeChoice,
    /// Write the rows as a JSON array; `-` is standard output, where it replaces the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Exit with 1 if a verdict differs from the recorded one: a new miss, a miss that no longer is one, a lost calibration.
    #[arg(long)]
    pub(crate) check: bool,
    /// Write a page with plots, DIR/index.html.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    /// Write the results into the blocks of a page of documentation; with --check, compare them with
    /// it instead. Includes `--shapes all`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "full", "trace_forms"])]
    pub(crate) docs: Option<PathBuf>,
    /// Write the timeline of one job for Perfetto (ui.perfetto.dev) or Chrome's viewer: CPUs, TNIs,
    /// atomic units.
    ///
    /// It begins when all ranks do, and states the number of entries for which there was no room.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The job for --trace, as numbered in the progress display.
    #[arg(long, value_name = "N", default_value = "1", requires = "trace")]
    pub(crate) trace_job: NonZeroUsize,
    /// Print one iteration of each form of persistent exchange, command by command, and run nothing
    /// else.
    #[arg(long, conflicts_with_all = ["trace", "json", "report", "check", "all"])]
    pub(crate) trace_forms: bool,
    /// Seed of every simulated job: shuffles events of the same moment. 0 keeps them in order.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// A twentieth of the work: a smoke test, marked as such.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also run what no paper measured: other machines, forms and sizes, and print their tables.
    /// `--report` and `--full` include it.
    #[arg(long)]
    pub(crate) what_if: bool,
    /// All steps of the reflects (500 of three stages instead of one stage, which are all alike),
    /// flat-parallel on all nodes: takes hours.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) full: bool,
    /// Print the trace hash of each job.
    #[arg(long)]
    pub(crate) hashes: bool,
    /// List the recorded figures that this run does not simulate, too, of all papers.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShapeChoice {
    /// 2×3×2 groups of Tofu.
    One,
    /// Also two other shapes of Tofu's groups, and three plain tori.
    All,
}

/// What the ranks of `run` communicate by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFabric {
    /// Shared memory, by the wall clock.
    Shm,
    /// A simulated network, in virtual time.
    Virt,
}

/// The machines whose networks run programs in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Network {
    /// PRIMEHPC FX100, Tofu2, calibrated by published figures.
    Fx100,
    /// Fugaku, TofuD.
    Tofud,
}

impl Reproduce {
    /// Returns whether to run the jobs that no published figure needs.
    pub(crate) fn includes_what_if(&self) -> bool {
        self.what_if || self.full || self.report.is_some()
    }

    /// Returns the job shapes for the figures that depend on arbitration.
    pub(crate) fn shapes(&self) -> Shapes {
        if self.docs.is_some() { Shapes::All } else { self.shapes.into() }
    }

    /// Returns the papers to simulate: all, if none is named.
    pub(crate) fn papers(&self) -> Vec<Paper> {
        match self.paper {
            Some(paper) => vec![paper],
            None => Paper::ALL.to_vec(),
        }
    }
}

impl From<ShapeChoice> for Shapes {
    fn from(choice: ShapeChoice) -> Shapes {
        match choice {
            ShapeChoice::One => Shapes::One,
            ShapeChoice::All => Shapes::All,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Number of ranks.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: NonZeroUsize,
    /// The ranks' network: shared memory, or a simulator in virtual time that runs one process at a time,
    /// for programs over `libtofucom`, `libacp`, BLACS and `onesided::launch` on Linux.
    #[arg(long, value_enum, default_value_t = RunFabric::Shm)]
    pub(crate) fabric: RunFabric,
    /// Virtual time: the machine whose times the network has. Default: fx100.
    #[arg(long, value_enum)]
    pub(crate) platform: Option<Network>,
    /// Virtual time: shuffle simultaneous events by this seed; 0 keeps them in order. Default: 0.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Memory that each rank can register, e.g. 64M or 1G. Default: 16G, or less where limits or more
    /// than 256 ranks require it.
    #[arg(long, value_name = "B")]
    pub(crate) segment_bytes: Option<SegmentBytes>,
    /// Ranks that call themselves one node, in rank order. Default: all of them.
    #[arg(long, value_name = "N")]
    pub(crate) ranks_per_node: Option<NonZeroUsize>,
    /// Bind each rank to one CPU (core), or to those of a NUMA node (numa);
    /// `onesided info --ranks N` shows which.
    #[arg(long, value_name = "none|core|numa", default_value = "none")]
    pub(crate) bind: Bind,
    /// End the job, and report the waits of all ranks, when all ranks have waited for this many
    /// seconds and none can be woken; `never`: don't check.
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub(crate) stuck_after: StuckAfter,
    /// Give all control queues of a rank one address space, as no Tofu2 has it: an address on one
    /// means the same on the others.
    #[arg(long)]
    pub(crate) shared_address_space: bool,
    /// Give each rank a thread that executes commands started by other ranks' control queues, while
    /// the rank computes.
    ///
    /// Jobs with such threads are not checked by --stuck-after.
    #[arg(long)]
    pub(crate) progress_thread: bool,
    /// Count operations, bytes and waits by rank and peer; a table on standard error at the end.
    ///
    /// Programs started by `onesided::launch` are counted. They run over a wrapped fabric then;
    /// without this and --trace they run over the bare one.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Write the counters as a JSON object; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a trace for Perfetto (ui.perfetto.dev) or Chrome's viewer: operations and waits of
    /// each rank as slices.
    ///
    /// Each rank keeps its latest 100,000, and states the number of earlier ones that were dropped.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Show the CPUs to which `onesided run --bind` would bind this many ranks. Default: the number
    /// of CPUs.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: Option<NonZeroUsize>,
    /// As a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Arguments {
    /// Parses the command line. On misuse, prints the error and exits; also exits after printing
    /// for `--help` and `--version`.
    ///
    /// # Errors
    /// If the help can't be written to standard output. A reader that closes its end early is not
    /// an error.
    pub(crate) fn from_command_line(given: impl IntoIterator<Item = OsString>) -> Result<Arguments, Box<dyn Error>> {
        Arguments::try_parse_from(without_lone_separator(given)).or_else(|told| {
            if !told.use_stderr() {
                match told.print().and_then(|()| io::stdout().flush()) {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        return Err(format!("standard output can't be written: {error}").into());
                    }
                    _ => std::process::exit(told.exit_code()),
                }
            }
            told.exit()
        })
    }
}

/// Leaves out a lone `--` of `reproduce`: `cargo reproduce -- --check` arrives as
/// `onesided reproduce -- --check`, because the alias itself ends after cargo's own separator.
/// `reproduce` has no positional arguments, so a `--` in it means nothing.
fn without_lone_separator(given: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let given: Vec<OsString> = given.into_iter().collect();
    if given.get(1).is_none_or(|command| command != "reproduce") {
        return given;
    }
    given.into_iter().filter(|argument| argument != "--").collect()
}

fn paper(name: &str) -> Result<Paper, String> {
    Paper::named(name).ok_or_else(|| {
        let names: Vec<_> = Paper::ALL.iter().map(|paper| paper.name()).collect();
        format!("known papers: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests;
