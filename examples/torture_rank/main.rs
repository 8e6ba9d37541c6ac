//! The program that `cargo xtask torture` starts: ranks that use one system in endless rounds, in
//! which every rank depends on every other, until a time has passed or a rank is lost.
//!
//! ```text
//! cargo example torture_rank --release -- words --for 1000 --report DIRECTORY --ranks 4
//! cargo example torture_rank --release -- named-lock --for 1000 --report DIRECTORY --number 0
//! ```
//!
//! Rank `R` writes two files into the directory: `began.R` with its process ID when the system is
//! set up, and `ended.R` with `ok ROUNDS` or `error MESSAGE`. `--for 0` is one round.

mod exchanges;
mod locks;
mod messages;
mod words;

use onesided::{Fabric, Group, ProgramResult};
use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{self, ExitCode},
    time::{Duration, Instant},
};

const USAGE: &str = "\
Uses one system in endless rounds, and reports how that ended.

  SYSTEM            words, lock, recoverable, prdma, acp, fmpl, blacs, xmp or named-lock
  --for MS          how long, in milliseconds (1000); 0: one round
  --report DIR      where to write began.R and ended.R (the current directory)
  --number N        named-lock: the number of this process, which is not a rank (0)
";

/// The options of the command line.
#[derive(Clone, Debug)]
struct Play {
    system: String,
    time: Duration,
    report: PathBuf,
}

/// The rounds that one rank has completed.
struct Rounds {
    until: Instant,
    made: u64,
}

impl Rounds {
    /// Reports that the system is set up.
    fn begin(play: &Play, number: u32) -> io::Result<Self> {
        write_whole(&play.report, &format!("began.{number}"), &process::id().to_string())?;
        Ok(Rounds { until: Instant::now() + play.time, made: 0 })
    }

    /// Counts a round; returns whether the time has passed.
    fn has_ended(&mut self) -> bool {
        self.made += 1;
        Instant::now() >= self.until
    }

    /// Counts a round; returns whether the time has passed at any rank. Every rank waits for every
    /// other one.
    async fn are_over(&mut self, world: &mut Group) -> ProgramResult<bool> {
        let over = u64::from(self.has_ended());
        Ok(world.greatest(over).await? == 1)
    }
}

/// Writes a file that others see whole or not at all.
fn write_whole(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let unfinished = directory.join(format!(".{name}"));
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, directory.join(name))
}

fn report(play: &Play, number: u32, ended: &Result<u64, String>) -> io::Result<()> {
    let text = match ended {
        Ok(rounds) => format!("ok {rounds}"),
        Err(message) => format!("error {message}"),
    };
    write_whole(&play.report, &format!("ended.{number}"), &text)
}

async fn torture_rank(fabric: Fabric, play: &Play) -> ProgramResult<()> {
    let ended = match &*play.system {
        "words" => words::words(&fabric, play).await,
        "lock" => locks::lock(&fabric, play).await,
        "recoverable" => locks::recoverable(&fabric, play).await,
        "prdma" => exchanges::prdma(&fabric, play).await,
        "xmp" => exchanges::xmp(&fabric, play).await,
        "acp" => messages::acp(&fabric, play).await,
        "fmpl" => messages::fmpl(&fabric, play).await,
        "blacs" => messages::blacs(&fabric, play).await,
        other => Err(format!("there is no system `{other}`").into()),
    };
    let told = ended.as_ref().map(|rounds| *rounds).map_err(|error| error.to_string());
    report(play, fabric.rank().number(), &told)?;
    ended.map(drop)
}

fn parsed(rest: Vec<OsString>) -> Result<(Play, u32), String> {
    let mut args = pico_args::Arguments::from_vec(rest);
    let problem = |error: pico_args::Error| error.to_string();
    let time = args.opt_value_from_str("--for").map_err(problem)?.unwrap_or(1000);
    let report = args.opt_value_from_str("--report").map_err(problem)?.unwrap_or_else(|| PathBuf::from("."));
    let number = args.opt_value_from_str("--number").map_err(problem)?.unwrap_or(0);
    let system = args.free_from_str().map_err(problem)?;
    match &args.finish()[..] {
        [] => Ok((Play { system, time: Duration::from_millis(time), report }, number)),
        [word, ..] => Err(format!("there is no `{}`; --help says what there is", word.display())),
    }
}

fn main() -> ExitCode {
    let is_named = std::env::args_os().nth(1).is_some_and(|word| word == "named-lock");
    if !is_named {
        return onesided::launch_with(USAGE, |rest| {
            let (play, _) = parsed(rest)?;
            Ok::<_, String>(async move |fabric| torture_rank(fabric, &play).await)
        });
    }
    let ended = parsed(std::env::args_os().skip(1).collect()).and_then(|(play, number)| {
        let ended = locks::named(&play, number).map_err(|error| error.to_string());
        report(&play, number, &ended).map_err(|error| format!("{}: {error}", play.report.display()))?;
        ended
    });
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
