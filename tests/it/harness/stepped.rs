//! Ranks as processes in virtual time.

use super::processes::{ASKED, run};
use fabric_conformance::{CaseProgram, Harness, JobReport, Loss};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};
use tofu2_sim::JobError;
use tofu2_stepped::{Launcher, SteppedRank};

/// Ranks as processes on the network of the FX100, of which one runs at a time.
pub(crate) struct Stepped;

impl Harness for Stepped {
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic, Loss::Kill];

    fn run(program: &CaseProgram, ranks: usize, test: &str, _: u64) -> Option<JobReport> {
        let launch = |binary: PathBuf, args: [&str; 6], asked: String| {
            // `env` sets the variable and becomes the rank.
            let words = [format!("{ASKED}={asked}").into(), binary.into_os_string()];
            let words = words.into_iter().chain(args.map(Into::into));
            match Launcher::new(ranks, "env".into(), words).run() {
                Ok(ended) => ended.failure.map_or(Ok(()), |failure| Err(failure.to_string())),
                Err(error) => Err(error.to_string()),
            }
        };
        let rank = |program: &CaseProgram| {
            let rank = SteppedRank::from_env()?.expect("the variable is there");
            let ran = catch_unwind(AssertUnwindSafe(|| rank.run(program)));
            let panicked = |_| JobError::RankPanicked { rank: rank.rank(), message: String::new() };
            ran.map_err(panicked)?.map_err(|error| JobError::RankFailed { rank: rank.rank(), error })
        };
        run(ranks, test, program, launch, rank)
    }
}
