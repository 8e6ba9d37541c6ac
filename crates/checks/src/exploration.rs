//! One job under every delivery order, or under random ones, and what must come of it.

use explore::{CounterExample, Explorer, Progress, Report, Sample};
use rdma_fabric::{Fabric, ProgramResult};
use std::{fmt, ops::ControlFlow, pin::Pin, rc::Rc, time::Instant};

/// One rank's part of a job.
pub type Run = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// Who explores a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// `cargo test`, and all others.
    Test,
    /// `cargo xtask explore --quick`, which CI runs: some seconds.
    Quick,
    /// `cargo xtask explore`: minutes, or more than has been exhausted.
    Full,
}

/// What must come of an [`Exploration`].
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Every state is reached, nothing is wrong, and there are at least so many states: fewer would
    /// mean that something is not explored any more. About half of what was recorded.
    Exhausted {
        /// The least number of states.
        at_least: u64,
    },
    /// Something wrong is found, within so many states; its description contains this text, and its
    /// schedule can be replayed.
    Violated {
        /// Part of what is said of it.
        saying: &'static str,
        /// The most states.
        within: u64,
    },
    /// In so many random runs nothing is wrong; `cargo test` makes a tenth of them.
    Sampled {
        /// The number of runs.
        runs: u64,
    },
    /// In so many random runs at least one is wrong.
    ViolatedAtRandom {
        /// The most runs.
        runs: u64,
    },
}

/// A job, and what must come of it.
#[derive(Clone)]
pub struct Exploration {
    name: String,
    size: Size,
    expected: Expected,
    explorer: Rc<dyn Fn() -> Explorer<'static>>,
    program: Rc<dyn Fn(Fabric) -> Run>,
}

/// What came of an [`Exploration`].
#[derive(Debug)]
pub enum Explored {
    /// All orders.
    Orders(Report),
    /// Random ones.
    Random(Sample),
}

impl fmt::Debug for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {:?})", self.name, self.size, self.expected)
    }
}

impl Exploration {
    /// Describes a job of [`Size::Test`], explored as `explorer` says. Of one that is explored at
    /// random the name says so.
    pub fn new(
        name: impl Into<String>,
        expected: Expected,
        explorer: impl Fn() -> Explorer<'static> + 'static,
        program: impl Fn(Fabric) -> Run + 'static,
    ) -> Self {
        let (mut name, explorer, program) = (name.into(), Rc::new(explorer), Rc::new(program));
        if matches!(expected, Expected::Sampled { .. } | Expected::ViolatedAtRandom { .. }) {
            name += ", at random";
        }
        Exploration { name, size: Size::Test, expected, explorer, program }
    }

    /// Changes who explores it.
    pub fn of_size(self, size: Size) -> Self {
        Exploration { size, ..self }
    }

    /// Returns the job's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns who explores it.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns what must come of it.
    pub fn expected(&self) -> Expected {
        self.expected
    }

    /// Whether something must be found wrong.
    pub fn is_mistaken(&self) -> bool {
        matches!(self.expected, Expected::Violated { .. } | Expected::ViolatedAtRandom { .. })
    }

    /// Explores the job, up to `states` states if there are that many; `watch` sees how far it is.
    /// Random runs begin with seed 1.
    pub fn explore(&self, states: u64, watch: impl FnMut(&Progress) -> ControlFlow<()> + 'static) -> Explored {
        self.explored((self.explorer)().state_limit(states).watch(watch), self.expected)
    }

    fn explored(&self, explorer: Explorer<'static>, expected: Expected) -> Explored {
        let program = self.program.clone();
        match expected {
            Expected::Exhausted { .. } | Expected::Violated { .. } => {
                Explored::Orders(explorer.run(move |fabric| program(fabric)))
            }
            Expected::Sampled { runs } | Expected::ViolatedAtRandom { runs } => {
                Explored::Random(explorer.sample(1, runs, move |fabric| program(fabric)))
            }
        }
    }

    /// Explores the job as `cargo test` does, and prints what came of it.
    ///
    /// # Panics
    /// If that is not what was expected.
    pub fn check(&self) {
        let (name, start) = (&self.name, Instant::now());
        let explorer = (self.explorer)();
        let explored = match self.expected {
            Expected::Violated { within, .. } => self.explored(explorer.state_limit(within), self.expected),
            Expected::Sampled { runs } => self.explored(explorer, Expected::Sampled { runs: runs / 10 }),
            _ => self.explored(explorer, self.expected),
        };
        let seconds = start.elapsed().as_secs_f64();
        match (self.expected, explored) {
            (Expected::Exhausted { at_least }, Explored::Orders(report)) => {
                println!("{name}: {report}, {seconds:.2} s");
                report.expect_exhausted();
                assert!(report.states >= at_least, "{name}: {} states explored, not {at_least}", report.states);
            }
            (Expected::Violated { saying, .. }, Explored::Orders(report)) => {
                let found = report.violation().unwrap_or_else(|| panic!("{name} passed: {report}"));
                println!("{name}: {} in {} moves, {} states, {seconds:.2} s", found.what, found.moves, report.states);
                assert!(found.what.contains(saying), "{name}: {}", found.what);
                self.replay(found);
            }
            (Expected::Sampled { .. }, Explored::Random(sample)) => {
                assert!(sample.failure.is_none(), "{name}: {sample}");
                println!("{name}: {sample}, {seconds:.2} s");
            }
            (_, Explored::Random(sample)) => {
                let failure = sample.failure.as_ref().unwrap_or_else(|| panic!("{name} passed: {sample}"));
                println!("{name}: {} with seed {}, {seconds:.2} s", failure.what, failure.seed);
            }
            (_, explored) => unreachable!("{explored:?}"),
        }
    }

    /// Runs a counter-example again.
    fn replay(&self, found: &CounterExample) {
        let program = self.program.clone();
        let (again, timeline) = (self.explorer)().replay(&found.schedule, move |fabric| program(fabric));
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{}", self.name);
    }
}

/// Checks those of [`Size::Test`].
///
/// # Panics
/// If there are none, or if one of them does not come to what was expected.
pub fn check(explorations: impl IntoIterator<Item = Exploration>) {
    let small = explorations.into_iter().filter(|exploration| exploration.size == Size::Test);
    assert!(small.inspect(Exploration::check).count() > 0, "nothing to explore");
}
