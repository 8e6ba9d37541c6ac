//! Running cases on a provider, and judging what became of their ranks.

use crate::{Case, CaseProgram, RecordedProgram};
use std::{fmt, sync::Arc};

/// A way for a rank to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The rank's program returns an error.
    Fail,
    /// The rank's program panics.
    Panic,
    /// `SIGKILL` ends the rank's process.
    Kill,
}

/// The error or panic message of a rank that is lost on purpose.
pub const ON_PURPOSE: &str = "lost on purpose";

impl Loss {
    /// Loses the calling rank in this way: returns the error, panics, or does not return.
    pub fn happen<T>(self) -> rdma_fabric::ProgramResult<T> {
        match self {
            Loss::Fail => Err(ON_PURPOSE.into()),
            // Does not call the panic hook, which would print the message.
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

/// What became of a rank.
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

/// What became of a job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// By rank.
    pub outcomes: Vec<RankOutcome>,
    /// What the provider says of the whole job: an error, in words, if a rank was lost.
    pub verdict: Result<(), String>,
}

impl JobReport {
    /// Runs `program` as a job of `ranks` ranks in this process, by `run`, and reports what became
    /// of each.
    ///
    /// `run` hands the program it is given to the provider and returns how the job ended.
    pub fn of_one_process<T, E: ToString>(
        program: &CaseProgram,
        ranks: usize,
        run: impl FnOnce(&RecordedProgram) -> Result<T, E>,
    ) -> Self {
        let recorded = RecordedProgram::new(program.clone(), ranks);
        let verdict = run(&recorded).map(drop).map_err(|error| error.to_string());
        JobReport { outcomes: recorded.outcomes(), verdict }
    }

    /// Returns the ranks in `which` that did not end well, a line each.
    fn complaints(&self, which: impl Fn(usize) -> bool) -> String {
        let ranks = self.outcomes.iter().enumerate().filter(|(rank, _)| which(*rank));
        let bad = ranks.filter(|(_, outcome)| !matches!(outcome, RankOutcome::Ended(_)));
        bad.map(|(rank, outcome)| format!("\n  rank {rank} {outcome}")).collect()
    }

    /// Panics with the complaints of `what` unless all ranks and the job ended well.
    fn must_be_well(&self, what: &str) {
        let complaints = self.complaints(|_| true);
        if !complaints.is_empty() || self.verdict.is_err() {
            let verdict = self.verdict.as_ref().err().map_or("", String::as_str);
            panic!("{what}: {verdict}{complaints}");
        }
    }

    /// Panics unless the last rank was lost in this way, and nobody else.
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

/// A provider as the suite runs it: how to start a job, and in which ways its ranks can be lost.
pub trait TestBed {
    /// The ways to be lost that other ranks of this provider notice. Each losing case runs once for
    /// each.
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic];

    /// Runs `program` once on `ranks` ranks, and reports what became of each.
    ///
    /// `test` is the full name of the calling test, by which a test binary can be executed again;
    /// `turn` is one of [`TestBed::turns`]. Returns `None` if the job is another process's
    /// business, as for a rank that passes its predecessors' jobs by.
    fn run(program: &CaseProgram, ranks: usize, test: &str, turn: u64) -> Option<JobReport>;

    /// Returns the turns of a case: its runs that differ, as by a random provider's seeds.
    fn turns() -> std::ops::Range<u64> {
        0..1
    }

    /// Returns the numbers of ranks for a case that is good for those `listed` and for any even
    /// number above the first of them.
    fn sizes(listed: &[usize]) -> Vec<usize> {
        listed.to_vec()
    }

    /// Runs a program with each of these numbers of ranks.
    ///
    /// # Panics
    /// Unless all ranks end well.
    fn check(program: &CaseProgram, sizes: &[usize], test: &str) {
        for ranks in Self::sizes(sizes) {
            for turn in Self::turns() {
                let report = Self::run(program, ranks, test, turn);
                report.iter().for_each(|report| report.must_be_well(&format!("{test}, {ranks} ranks, turn {turn}")));
            }
        }
    }

    /// Runs a program whose last rank is lost, in each of [`TestBed::LOSSES`].
    ///
    /// # Panics
    /// Unless the last rank is lost in that way, all others end well, and the job does not.
    fn check_losing(program: impl Fn(Loss) -> CaseProgram, sizes: &[usize], test: &str) {
        for ranks in Self::sizes(sizes) {
            for &loss in Self::LOSSES {
                for turn in Self::turns() {
                    let what = format!("{test}, {ranks} ranks, turn {turn}, {loss:?}");
                    let report = Self::run(&program(loss), ranks, test, turn);
                    report.iter().for_each(|report| report.must_lack_the_last(&what, loss));
                }
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
            crate::Start::Losing(start) => {
                let program = |loss| CaseProgram(Arc::new(move |fabric| start(fabric, loss)));
                Self::check_losing(program, case.sizes, test);
            }
        }
    }
}
