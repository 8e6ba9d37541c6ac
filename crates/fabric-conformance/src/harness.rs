//! Runs cases on a provider, and checks the outcomes of their ranks.

use crate::{Case, CaseProgram, RecordedProgram, watchdog::watch};
use rdma_fabric::{FabricError, Rank};
use std::{fmt, sync::Arc};

/// A way in which a rank can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The rank's program returns an error.
    Fail,
    /// The rank's program panics.
    Panic,
    /// The rank's process is ended by `SIGKILL`.
    Kill,
}

/// The error or panic message of a rank that is lost on purpose.
pub const ON_PURPOSE: &str = "lost on purpose";

impl Loss {
    /// Loses the calling rank in this way: returns the error, panics, or does not return.
    pub fn happen<T>(self) -> rdma_fabric::ProgramResult<T> {
        match self {
            Loss::Fail => Err(ON_PURPOSE.into()),
            // This does not call the panic hook, which would print the message.
            Loss::Panic => std::panic::resume_unwind(Box::new(ON_PURPOSE)),
            #[cfg(unix)]
            Loss::Kill => {
                let me = rustix::process::getpid();
                rustix::process::kill_process(me, rustix::process::Signal::KILL)?;
                Err("SIGKILL did not end this process".into())
            }
            #[cfg(not(unix))]
            Loss::Kill => Err("ranks are no processes here".into()),
        }
    }
}

/// The outcome of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankOutcome {
    /// Its program returned `Ok`, with this text.
    Ended(String),
    /// Its program returned this error.
    Failed(String),
    /// Its program panicked.
    Panicked,
    /// It was killed, or never ended.
    Silent,
}

impl fmt::Display for RankOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankOutcome::Ended(_) => write!(f, "ended well"),
            RankOutcome::Failed(error) => write!(f, "failed: {error}"),
            RankOutcome::Panicked => write!(f, "panicked"),
            RankOutcome::Silent => write!(f, "was killed, or never ended"),
        }
    }
}

/// The outcome of a job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The outcome of each rank.
    pub outcomes: Vec<RankOutcome>,
    /// The provider's verdict about the whole job: an error message if a rank was lost.
    pub verdict: Result<(), String>,
}

impl JobReport {
    /// Runs `program` as a job of `ranks` ranks in this process, by calling `run`, and reports the
    /// outcome of each rank.
    ///
    /// `run` passes its argument to the provider as the program and returns the outcome of the job.
    pub fn of_one_process<T, E: ToString>(
        program: &CaseProgram,
        ranks: usize,
        run: impl FnOnce(&RecordedProgram) -> Result<T, E>,
    ) -> Self {
        let recorded = RecordedProgram::new(program.clone(), ranks);
        let verdict = run(&recorded).map(drop).map_err(|error| error.to_string());
        JobReport { outcomes: recorded.outcomes(), verdict }
    }

    /// Returns a line for each rank in `which` that did not succeed.
    fn complaints(&self, which: impl Fn(usize) -> bool) -> String {
        let ranks = self.outcomes.iter().enumerate().filter(|(rank, _)| which(*rank));
        let bad = ranks.filter(|(_, outcome)| !matches!(outcome, RankOutcome::Ended(_)));
        bad.map(|(rank, outcome)| format!("\n  rank {rank} {outcome}")).collect()
    }

    /// Panics with the complaints about `what` unless all ranks and the job succeeded.
    fn must_be_well(&self, what: &str) {
        let complaints = self.complaints(|_| true);
        if !complaints.is_empty() || self.verdict.is_err() {
            let verdict = self.verdict.as_ref().err().map_or("", String::as_str);
            panic!("{what}: {verdict}{complaints}");
        }
    }

    /// Panics unless the last rank aborted the job and the other ranks received the corresponding
    /// error or never ended, or unless all succeeded because the provider can't abort jobs.
    fn must_be_aborted(&self, what: &str) {
        let Err(verdict) = &self.verdict else { return self.must_be_well(what) };
        let (rank, (text, code)) = (Rank::new(self.outcomes.len() as u32 - 1), LAST_WORDS);
        assert!(
            verdict.contains(text) && verdict.contains(&rank.to_string()) && verdict.contains(&code.to_string()),
            "{what}: the job's error is {verdict:?}"
        );
        let told = RankOutcome::Failed(FabricError::Aborted { rank, code }.to_string());
        for (rank, outcome) in self.outcomes.iter().enumerate() {
            assert!(*outcome == told || *outcome == RankOutcome::Silent, "{what}: rank {rank} {outcome}");
        }
    }

    /// Panics unless the last rank, and no other, was lost in this way.
    fn must_lack_the_last(&self, what: &str, loss: Loss) {
        let last = self.outcomes.len() - 1;
        let expected = match loss {
            Loss::Fail => RankOutcome::Failed(ON_PURPOSE.to_owned()),
            Loss::Panic => RankOutcome::Panicked,
            Loss::Kill => RankOutcome::Silent,
        };
        let complaints = self.complaints(|rank| rank != last);
        assert!(complaints.is_empty(), "{what}:{complaints}");
        assert_eq!(self.outcomes[last], expected, "{what}: what became of rank {last}");
        assert!(self.verdict.is_err(), "{what}: a rank was lost and the job ended well");
    }
}

/// The message of the last rank in a case that aborts its job, and its exit code.
pub(crate) const LAST_WORDS: (&str, i32) = ("aborted on purpose", 7);

/// The suite's interface to a provider: how to start a job, and the ways in which its ranks can be
/// lost.
pub trait Harness {
    /// The kinds of loss that other ranks of this provider notice. Each losing case runs once for
    /// each kind.
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic];

    /// Runs `program` once on `ranks` ranks, and reports the outcome of each rank.
    ///
    /// `test` is the full name of the calling test, with which the test binary can be executed
    /// again. `turn` is one of [`Harness::turns`]. Returns `None` if the job belongs to another
    /// process, as when a rank skips the jobs before its own.
    fn run(program: &CaseProgram, ranks: usize, test: &str, turn: u64) -> Option<JobReport>;

    /// Returns the turns of a case: runs that differ, for example in the seed of a random provider.
    fn turns() -> std::ops::Range<u64> {
        0..1
    }

    /// Returns the numbers of ranks to run a case with that supports those `listed` and any even
    /// number above the first of them.
    fn sizes(listed: &[usize]) -> Vec<usize> {
        listed.to_vec()
    }

    /// Runs a program with each number of ranks in `sizes`.
    ///
    /// # Panics
    /// If a rank does not succeed.
    fn check(program: &CaseProgram, sizes: &[usize], test: &str) {
        for ranks in Self::sizes(sizes) {
            for turn in Self::turns() {
                let report = run_watched::<Self>(program, ranks, test, turn);
                report.iter().for_each(|report| report.must_be_well(&format!("{test}, {ranks} ranks, turn {turn}")));
            }
        }
    }

    /// Runs a program whose last rank is lost, in each of [`Harness::LOSSES`].
    ///
    /// # Panics
    /// Unless the last rank is lost in that way, all others succeed, and the job fails.
    fn check_losing(program: impl Fn(Loss) -> CaseProgram, sizes: &[usize], test: &str) {
        for ranks in Self::sizes(sizes) {
            for &loss in Self::LOSSES {
                for turn in Self::turns() {
                    let what = format!("{test}, {ranks} ranks, turn {turn}, {loss:?}");
                    let report = run_watched::<Self>(&program(loss), ranks, test, turn);
                    report.iter().for_each(|report| report.must_lack_the_last(&what, loss));
                }
            }
        }
    }

    /// Runs a program whose last rank aborts the job.
    ///
    /// # Panics
    /// Unless the job ends with that rank's message and no rank succeeds, or all succeed because
    /// the provider can't abort jobs.
    fn check_aborting(program: &CaseProgram, sizes: &[usize], test: &str) {
        for ranks in Self::sizes(sizes) {
            for turn in Self::turns() {
                let report = run_watched::<Self>(program, ranks, test, turn);
                report.iter().for_each(|report| report.must_be_aborted(&format!("{test}, {ranks} ranks, turn {turn}")));
            }
        }
    }

    /// Runs a case of the suite.
    ///
    /// # Panics
    /// If the provider fails it.
    fn check_case(case: &Case, test: &str) {
        match case.program {
            crate::Start::Plain(start) => Self::check(&CaseProgram(Arc::new(start)), case.sizes, test),
            crate::Start::Aborting(start) => Self::check_aborting(&CaseProgram(Arc::new(start)), case.sizes, test),
            crate::Start::Losing(start) => {
                let program = |loss| CaseProgram(Arc::new(move |fabric| start(fabric, loss)));
                Self::check_losing(program, case.sizes, test);
            }
        }
    }
}

/// Runs a job under the watchdog.
fn run_watched<B: Harness + ?Sized>(program: &CaseProgram, ranks: usize, test: &str, turn: u64) -> Option<JobReport> {
    let _watched = watch(format!("{test}, {ranks} ranks, turn {turn}"));
    B::run(program, ranks, test, turn)
}
