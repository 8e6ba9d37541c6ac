//! A job to run under every delivery order, or under random ones, and its expected result.

use explore::{CounterExample, Explorer, Progress, Report, Sample, Unread};
use fabric_conformance::watchdog::watch;
use rdma_fabric::{Fabric, ProgramResult};
use std::{fmt, ops::ControlFlow, pin::Pin, rc::Rc, time::Instant};

/// The number of states among which a test looks for a shortest run that fails.
const NEAR: usize = 1_000;

/// One rank's part of a job.
pub type Run = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// The size of an exploration, which selects the commands that run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// `cargo test` runs it, and so do all commands.
    Test,
    /// `cargo xtask explore --quick`, which CI runs, takes some seconds for it.
    Quick,
    /// Only `cargo xtask explore` runs it: it takes minutes, or exceeds the largest number of
    /// states exhausted so far.
    Full,
}

/// The result that an [`Exploration`] must have.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Every state is reached, and no violation is found.
    Exhausted {
        /// The minimum number of states, about half of the recorded number: fewer would mean that
        /// part of the job is no longer explored.
        at_least: u64,
    },
    /// A violation is found, and its schedule can be replayed.
    Violated {
        /// A part of the finding's description.
        saying: &'static str,
        /// The number of states within which it must be found.
        within: u64,
    },
    /// No random run fails.
    Sampled {
        /// The number of runs; `cargo test` executes a fortieth of them.
        runs: u64,
    },
    /// At least one random run fails.
    ViolatedAtRandom {
        /// The number of runs among which there must be one.
        runs: u64,
    },
}

/// A job, and the result it must have.
#[derive(Clone)]
pub struct Exploration {
    name: String,
    size: Size,
    expected: Expected,
    explorer: Rc<dyn Fn() -> Explorer<'static>>,
    program: Rc<dyn Fn(Fabric) -> Run>,
}

/// The result of an [`Exploration`].
#[derive(Debug)]
pub enum Explored {
    /// The result of exploring all orders.
    Orders(Report),
    /// The result of random runs.
    Random(Sample),
}

impl fmt::Debug for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {:?})", self.name, self.size, self.expected)
    }
}

impl Exploration {
    /// Describes a job of [`Size::Test`], explored as `explorer` specifies. If it is explored at
    /// random, its name states this.
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

    /// Sets the size, which selects the commands that run it.
    pub fn of_size(self, size: Size) -> Self {
        Exploration { size, ..self }
    }

    /// Returns the same job over a provider that executes a rank's atomics on its own memory with
    /// the CPU, although these are not atomic with respect to the network's: a violation must be
    /// found.
    #[must_use]
    pub fn with_own_atomics_by_cpu(&self) -> Self {
        let explorer = self.explorer.clone();
        Exploration {
            name: format!("{}, own atomics by the CPU", self.name),
            size: Size::Test,
            expected: Expected::Violated { saying: "", within: 500_000 },
            explorer: Rc::new(move || explorer().own_atomics_by_cpu()),
            program: self.program.clone(),
        }
    }

    /// Returns the same job over network interfaces that acknowledge operations before their effects
    /// are visible, under a provider that waits for reads behind them: the result must be the same.
    #[must_use]
    pub fn acknowledged(&self) -> Self {
        let explorer = self.explorer.clone();
        Exploration {
            name: format!("{}, acknowledged", self.name),
            explorer: Rc::new(move || explorer().acknowledged()),
            ..self.clone()
        }
    }

    /// Returns the same job over such interfaces and a provider that leaves some reads out: a violation
    /// must be found.
    #[must_use]
    pub fn without_read(&self, unread: Unread) -> Self {
        let explorer = self.explorer.clone();
        Exploration {
            name: format!("{}, {unread:?} without a read", self.name),
            size: Size::Test,
            expected: Expected::Violated { saying: "", within: 500_000 },
            explorer: Rc::new(move || explorer().acknowledged().without_read(unread)),
            program: self.program.clone(),
        }
    }

    /// Returns whether the job's explorer guarantees that atomics are atomic with respect to puts
    /// and stores.
    pub fn promises_coherence(&self) -> bool {
        (self.explorer)().promises_coherence()
    }

    /// Returns the job's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size, which selects the commands that run it.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns whether `cargo test` explores it (random explorations with a tenth of the runs).
    pub fn is_tested(&self) -> bool {
        self.size == Size::Test
    }

    /// Returns the expected result.
    pub fn expected(&self) -> Expected {
        self.expected
    }

    /// Returns whether a violation must be found.
    pub fn is_mutant(&self) -> bool {
        matches!(self.expected, Expected::Violated { .. } | Expected::ViolatedAtRandom { .. })
    }

    /// Explores the job, up to `states` states if there are that many, and calls `watch` with the
    /// progress. Random runs begin with seed 1.
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

    /// Explores the job as `cargo test` does, and prints the result.
    ///
    /// # Panics
    /// If the result is not the expected one.
    pub fn check(&self) {
        let (name, start) = (&self.name, Instant::now());
        let _watched = watch(name);
        let explorer = (self.explorer)();
        let explored = match self.expected {
            // A shortest run takes longer to find than any: it is looked for if another one says something else.
            Expected::Violated { saying, within } => {
                let first = self.explored(explorer.state_limit(within).shortest_within(NEAR), self.expected);
                match &first {
                    Explored::Orders(report)
                        if report.violation().is_some_and(|found| !found.what.contains(saying)) =>
                    {
                        self.explored((self.explorer)().state_limit(within), self.expected)
                    }
                    _ => first,
                }
            }
            Expected::Sampled { runs } => self.explored(explorer, Expected::Sampled { runs: runs / 40 }),
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

    /// Replays a counter-example, and compares it with the original.
    fn replay(&self, found: &CounterExample) {
        let program = self.program.clone();
        let again = (self.explorer)().replay(&found.schedule, move |fabric| program(fabric));
        assert_eq!((again.what.as_ref(), &again.timeline), (Some(&found.what), &found.timeline), "{}", self.name);
    }
}

/// Checks the explorations of [`Size::Test`].
///
/// # Panics
/// If there are none, or if one of them does not have the expected result.
pub fn check(explorations: impl IntoIterator<Item = Exploration>) {
    let small = explorations.into_iter().filter(|exploration| exploration.size == Size::Test);
    assert!(small.inspect(Exploration::check).count() > 0, "nothing to explore");
}
