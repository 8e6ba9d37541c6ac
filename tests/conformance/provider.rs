//! What a provider offers the suite: running a program on so many ranks and saying what became of each.

use rdma_fabric::{Fabric, Program, ProgramResult, Rank};
use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

/// How a rank is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its program returns an error.
    Fail,
    /// Its program panics.
    Panic,
    /// `SIGKILL` ends its process.
    Kill,
}

/// What a rank that is lost on purpose says, if it can say anything.
pub(crate) const ON_PURPOSE: &str = "lost on purpose";

impl Loss {
    /// Be lost.
    pub(crate) fn happen<T>(self) -> ProgramResult<T> {
        match self {
            Loss::Fail => Err(ON_PURPOSE.into()),
            // Without the hook, which would print it.
            Loss::Panic => std::panic::resume_unwind(Box::new(ON_PURPOSE)),
            #[cfg(target_os = "linux")]
            Loss::Kill => {
                let me = rustix::process::getpid();
                rustix::process::kill_process(me, rustix::process::Signal::KILL)?;
                Err("SIGKILL did not end this process".into())
            }
            #[cfg(not(target_os = "linux"))]
            Loss::Kill => Err("ranks are no processes here".into()),
        }
    }
}

/// What became of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its program returned `Ok`, and this.
    Ended(String),
    /// Its program returned an error.
    Failed(String),
    /// Its program panicked.
    Panicked,
    /// It said nothing: it was killed, or never ended.
    Silent,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ended(_) => write!(f, "ended well"),
            Outcome::Failed(error) => write!(f, "failed: {error}"),
            Outcome::Panicked => write!(f, "panicked"),
            Outcome::Silent => write!(f, "was killed, or never ended"),
        }
    }
}

/// What became of a job.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// By rank.
    pub(crate) outcomes: Vec<Outcome>,
    /// What the provider says of the whole job.
    pub(crate) verdict: Result<(), String>,
}

impl Report {
    /// The ranks in `which` that did not end well, a line each.
    fn complaints(&self, which: impl Fn(usize) -> bool) -> String {
        let ranks = self.outcomes.iter().enumerate().filter(|(rank, _)| which(*rank));
        let bad = ranks.filter(|(_, outcome)| !matches!(outcome, Outcome::Ended(_)));
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
        let as_told = match loss {
            Loss::Fail => Outcome::Failed(ON_PURPOSE.to_owned()),
            Loss::Panic => Outcome::Panicked,
            Loss::Kill => Outcome::Silent,
        };
        let complaints = self.complaints(|rank| rank != last);
        assert!(complaints.is_empty(), "{what}:{complaints}");
        assert_eq!(self.outcomes[last], as_told, "{what}: what became of rank {last}");
        assert!(self.verdict.is_err(), "{what}: a rank was lost and the job ended well");
    }
}

/// What a case's ranks produce: nothing, or a text.
pub(crate) trait Told: Send + 'static {
    fn tell(self) -> String;
}

impl Told for () {
    fn tell(self) -> String {
        String::new()
    }
}

impl Told for String {
    fn tell(self) -> String {
        self
    }
}

/// A program that the suite can run anywhere.
pub(crate) trait Case: Program<Out: Told> + Clone + Send + 'static {}

impl<P: Program<Out: Told> + Clone + Send + 'static> Case for P {}

/// Runs cases over one fabric. Panics with what a case says if it fails.
pub(crate) trait Provider {
    /// How ranks can be lost here.
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic];

    /// Runs of one case that differ.
    fn turns() -> u64 {
        1
    }

    /// Run `program` once. `test` is the name of the test that calls, `turn` is below [`Provider::turns`]. `None` if it
    /// is another process's business.
    fn run<P: Case>(ranks: usize, test: &str, turn: u64, program: &P) -> Option<Report>;

    /// Numbers of ranks to run a case with that is good for `listed` and for any even number above the first of them.
    fn sizes(listed: &[usize]) -> Vec<usize> {
        listed.to_vec()
    }

    /// All ranks must end well.
    fn check<P: Case>(sizes: &[usize], test: &str, program: &P) {
        for ranks in Self::sizes(sizes) {
            for turn in 0..Self::turns() {
                let report = Self::run(ranks, test, turn, program);
                report.iter().for_each(|report| report.must_be_well(&format!("{test}, {ranks} ranks, turn {turn}")));
            }
        }
    }

    /// The last rank must be lost, in every way there is; all others must end well, and the job must not.
    fn check_losing<P: Case>(sizes: &[usize], test: &str, program: impl Fn(Loss) -> P) {
        for ranks in Self::sizes(sizes) {
            for &loss in Self::LOSSES {
                for turn in 0..Self::turns() {
                    let what = format!("{test}, {ranks} ranks, turn {turn}, {loss:?}");
                    let report = Self::run(ranks, test, turn, &program(loss));
                    report.iter().for_each(|report| report.must_lack_the_last(&what, loss));
                }
            }
        }
    }
}

/// What a case's rank produces, told.
type Telling = Pin<Box<dyn Future<Output = ProgramResult<String>>>>;

/// Whichever case it is. What runs it is compiled once, not for every case again, which made three tenths of the code.
#[derive(Clone)]
pub(crate) struct On {
    run: Arc<dyn Fn(Fabric) -> Telling + Send + Sync>,
}

impl On {
    pub(crate) fn new<P: Case>(program: &P) -> Self {
        let program = program.clone();
        let run = move |fabric| -> Telling {
            let program = program.clone();
            Box::pin(async move { program.run(fabric).await.map(Told::tell) })
        };
        On { run: Arc::new(run) }
    }
}

impl fmt::Debug for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a case")
    }
}

impl Program for On {
    type Out = String;

    async fn run(&self, fabric: Fabric) -> ProgramResult<String> {
        (self.run)(fabric).await
    }
}

/// A program whose ranks' outcomes are kept, for providers that run them in this process.
#[derive(Clone, Debug)]
pub(crate) struct Observed<P> {
    program: P,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl<P> Observed<P> {
    pub(crate) fn new(program: P, ranks: usize) -> Self {
        Observed { program, outcomes: Arc::new(Mutex::new(vec![Outcome::Silent; ranks])) }
    }

    /// What is known of the ranks now.
    pub(crate) fn report(&self, verdict: Result<(), String>) -> Report {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Report { outcomes, verdict }
    }

    fn note(&self, rank: Rank, outcome: Outcome) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)[rank.index()] = outcome;
    }
}

impl<P: Case> Program for Observed<P> {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let rank = fabric.rank();
        let unwinding = Unwinding { noted: self, rank };
        let outcome = self.program.run(fabric).await;
        std::mem::forget(unwinding);
        match outcome {
            Ok(out) => {
                self.note(rank, Outcome::Ended(out.tell()));
                Ok(())
            }
            Err(error) => {
                self.note(rank, Outcome::Failed(error.to_string()));
                Err(error)
            }
        }
    }
}

/// Notes a panic. One without, when a rank that waits is dropped, says nothing.
struct Unwinding<'a, P: Case> {
    noted: &'a Observed<P>,
    rank: Rank,
}

impl<P: Case> Drop for Unwinding<'_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.noted.note(self.rank, Outcome::Panicked);
        }
    }
}
