//! The entry point.

mod run;

use crate::{
    acknowledged::{Execution, Unread},
    cell::Cells,
    checks::{Checks, View, named},
    effect::Effect,
    live::LiveJob,
    loss::{Ranks, bit},
    report::{Replay, Report},
    running::Task,
    sample::{self, Failure, Sample},
    schedule::{MOST_RANKS, Schedule},
    search,
    space::{self, Progress},
};
use rdma_fabric::{Caps, Fabric, Program, ProgramResult, Rank};
use std::{collections::HashMap, fmt, future::Future, ops::ControlFlow, sync::Arc};

type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// The options and limits of an exploration.
///
/// ```
/// use explore::{Explorer, Rank};
///
/// // Two ranks add to a word of rank 0, by a get and a put: one of the additions may be lost.
/// let report = Explorer::new(2)
///     .at_end("both were counted", |view| view.words().all(|(_, value)| value == 2))
///     .run(|fabric| async move {
///         let region = fabric.alloc_symmetric(8).await?;
///         let word = fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?;
///         let before = fabric.get_word(&word).await?;
///         fabric.put_word(&word, before + 1).await?;
///         Ok(())
///     });
/// let found = report.expect_violation();
/// println!("{found}"); // who did what, and what arrived when
/// ```
pub struct Explorer<'a> {
    /// The node of each rank.
    nodes: Arc<[u32]>,
    caps: Caps,
    states: u64,
    near: usize,
    patience: u32,
    checks: Checks<'a>,
    names: HashMap<(u32, u64), String>,
    reduced: bool,
    own_by_cpu: bool,
    acknowledged: bool,
    unread: Option<Unread>,
    set_up: Option<u32>,
    mortal: Ranks,
    together: bool,
    watch: Box<Watch<'a>>,
}

impl fmt::Debug for Explorer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Explorer({} ranks, at most {} states)", self.nodes.len(), self.states)
    }
}

impl<'a> Explorer<'a> {
    /// Creates an explorer of jobs of `ranks` ranks, 1 to 26.
    ///
    /// # Panics
    /// If `ranks` is not in this range.
    pub fn new(ranks: usize) -> Self {
        assert!((1..=MOST_RANKS).contains(&ranks), "{ranks} ranks can't be explored; 1 to 26 can");
        Explorer {
            nodes: (0..ranks as u32).collect(),
            caps: Caps::weakest(),
            states: 10_000_000,
            near: space::NEAR,
            patience: 1_000,
            checks: Checks::default(),
            names: HashMap::new(),
            reduced: true,
            own_by_cpu: false,
            acknowledged: false,
            unread: None,
            set_up: None,
            mortal: 0,
            together: false,
            watch: Box::new(|_| ControlFlow::Continue(())),
        }
    }

    /// Sets the node of each rank, numbered from 0; by default, each rank is on a separate node.
    /// Operations do not depend on it.
    ///
    /// # Panics
    /// If there is not exactly one node for each rank, or if a number below the highest is not
    /// used.
    #[must_use]
    pub fn nodes(mut self, nodes: &[u32]) -> Self {
        assert_eq!(nodes.len(), self.nodes.len(), "a node for each rank");
        let highest = nodes.iter().copied().max().unwrap_or(0);
        assert!((0..highest).all(|node| nodes.contains(&node)), "nodes are numbered without gaps: {nodes:?}");
        self.nodes = nodes.into();
        self
    }

    /// Sets the guarantees of the provider; [`Caps::weakest`] by default. Only `put_order`,
    /// `puts_in_order`, `coherent_atomics`, `notice_bits` and `helpers` matter here.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets the number of states at which to stop; ten million by default. Each takes 16 to 40
    /// bytes.
    #[must_use]
    pub fn state_limit(mut self, states: u64) -> Self {
        self.states = states;
        self
    }

    /// Sets the number of states among which to look for a shortest run that fails, once one has
    /// been found; 300,000 by default. If there are more, the counter-example is the run that was
    /// found first.
    #[must_use]
    pub fn shortest_within(mut self, states: usize) -> Self {
        self.near = states;
        self
    }

    /// Sets the number of answers that a rank may be given in one [step](crate::Probe::step) before
    /// the path is cut; 1000 by default.
    #[must_use]
    pub fn patience(mut self, answers: u32) -> Self {
        self.patience = answers;
        self
    }

    /// Sets the name that timelines use for the word at byte `offset` of the `region`-th symmetric
    /// region to be allocated, counted from 0.
    #[must_use]
    pub fn name(mut self, region: u32, offset: u64, name: &str) -> Self {
        self.names.insert((region, offset), name.to_owned());
        self
    }

    /// Sets the name that timelines use for a [fact](crate::Probe).
    #[must_use]
    pub fn name_fact(mut self, fact: u32, name: &str) -> Self {
        self.names.insert(Cells::name_of_fact(fact), name.to_owned());
        self
    }

    /// Turns off the reduction: each act of a rank is a separate move, even if no other rank could
    /// observe it. There are many more states, but the same outcomes; this is for testing the
    /// explorer itself. A counter-example found without the reduction must be replayed without it.
    #[must_use]
    pub fn unreduced(mut self) -> Self {
        self.reduced = false;
        self
    }

    /// Explores only one order of the ranks' set-up: rank `r` sets up until fact `first + r` is
    /// non-zero. Once all have set up, every order is explored, including that of operations still
    /// in flight; no rank dies before then. Otherwise, set-up code that copies tables would
    /// dominate the exploration. [`Explorer::sample`] varies the order of the set-up as well.
    #[must_use]
    pub fn set_up(mut self, first: u32) -> Self {
        self.set_up = Some(first);
        self
    }

    /// Lets `rank` die at any moment before it has ended, or not at all. Call this again for more
    /// ranks. Each of the others learns of the death independently, at any moment, or ends without
    /// learning; [the crate's documentation](crate#the-loss-of-ranks) describes the consequences.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn mortal(mut self, rank: Rank) -> Self {
        assert!(rank.index() < self.nodes.len(), "{rank} of a job of {} ranks can't die", self.nodes.len());
        self.mortal |= bit(rank);
        self
    }

    /// Keeps the regions that a rank owns when its program returns until the job ends. This has the
    /// effect of a final barrier before the ranks leave, without the many orders of a real one.
    /// Otherwise, regions are dropped when their rank's program returns, and ranks that still
    /// address them receive [`StaleRegion`](rdma_fabric::FabricError::StaleRegion). In either case,
    /// regions that the program drops earlier are dropped at that point.
    #[must_use]
    pub fn leave_together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Adds a condition that must hold in every state.
    #[must_use]
    pub fn always(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.always.push(named(name, check));
        self
    }

    /// Adds a condition that must hold when all ranks have ended or died and nothing is in flight
    /// any longer.
    #[must_use]
    pub fn at_end(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.at_end.push(named(name, check));
        self
    }

    /// Adds a condition that must hold in some state: it checks that something is possible.
    #[must_use]
    pub fn possible(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.possible.push(named(name, check));
        self
    }

    /// Calls `watch` with the progress from time to time, and stops if it returns `Break`.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(&Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Explores the futures that `program` creates for each rank. It is called many times, and must
    /// create the same future each time.
    pub fn run<Fut>(self, program: impl Fn(Fabric) -> Fut + 'a) -> Report
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        self.explore(&tasks(program))
    }

    /// Explores a [`Program`].
    pub fn run_program<P: Program<Out = ()> + Clone + 'static>(self, program: P) -> Report {
        self.run(move |fabric| {
            let program = program.clone();
            async move { program.run(fabric).await }
        })
    }

    /// Replays the schedule of a counter-example.
    ///
    /// # Panics
    /// If `schedule` was not printed by a counter-example.
    pub fn replay<Fut>(self, schedule: &str, program: impl Fn(Fabric) -> Fut + 'a) -> Replay
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        let Some(schedule) = Schedule::read(schedule) else { panic!("{schedule:?} is no schedule") };
        let start = tasks(program);
        let mut world = self.world(&start);
        let mut cells = world.automaton.job.cells.borrow_mut();
        schedule.shared.iter().for_each(|home| cells.share(*home));
        schedule.contested.iter().for_each(|holding| cells.contested.add(*holding));
        drop(cells);
        let (what, timeline) = search::follow(&mut world, &self.checks, &schedule.moves);
        Replay { what, timeline }
    }

    /// Runs `runs` jobs with random orders, the first from `seed` and each further one from the
    /// next number. Stops at the first run that fails.
    pub fn sample<Fut>(self, seed: u64, runs: u64, program: impl Fn(Fabric) -> Fut + 'a) -> Sample
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        let mut sample = Sample::default();
        for seed in (0..runs).map(|run| seed.wrapping_add(run)) {
            let mut job = self.live(&program);
            match sample::run(&mut job, self.nodes.len(), &self.checks, seed) {
                Ok(events) => {
                    sample.runs += 1;
                    sample.events += events;
                }
                Err(what) => {
                    let mut job = self.live(&program);
                    job.record(&self.names);
                    // Repeats the same run, to record its timeline.
                    let _ = sample::run(&mut job, self.nodes.len(), &self.checks, seed);
                    sample.failure = Some(Failure { what, seed, timeline: job.timeline() });
                    break;
                }
            }
        }
        sample
    }

    /// Repeats the run of [`Explorer::sample`] that starts from `seed`. Returns its memory accesses
    /// and the failure, if there is one.
    pub fn effects<Fut>(self, seed: u64, program: impl Fn(Fabric) -> Fut + 'a) -> (Vec<Effect>, Option<String>)
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        let mut job = self.live(&program);
        job.keep_effects();
        let wrong = sample::run(&mut job, self.nodes.len(), &self.checks, seed).err();
        (job.effects(), wrong)
    }

    fn live<Fut>(&self, program: impl Fn(Fabric) -> Fut) -> LiveJob
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        let ranks = (0..self.nodes.len() as u32).map(Rank::new).filter(|rank| self.mortal & bit(*rank) != 0);
        let mut job = ranks.fold(LiveJob::on_nodes(self.nodes.clone(), self.caps, program), LiveJob::mortal);
        if self.acknowledged && !self.caps.coherent_atomics {
            job.execution = Execution::Interface(self.unread);
        }
        if self.together { job.leave_together() } else { job }
    }
}

fn tasks<'a, Fut>(program: impl Fn(Fabric) -> Fut + 'a) -> impl Fn(Fabric) -> Task + 'a
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    move |fabric| {
        let run = program(fabric);
        Box::pin(async move { run.await.map_err(|error| format!("an error: {error}")) })
    }
}
