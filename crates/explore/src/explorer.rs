//! The entry point.

mod run;

use crate::{
    cell::Cells,
    checks::{Checks, View, named},
    effect::Effect,
    live::LiveJob,
    loss::{Ranks, bit},
    report::Report,
    sample::{self, Failure, Sample},
    schedule::{MOST_RANKS, Schedule},
    search::{self, Progress},
    session::Task,
};
use rdma_fabric::{Caps, Fabric, Program, ProgramResult, Rank};
use std::{collections::HashMap, fmt, future::Future, ops::ControlFlow, sync::Arc};

type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// What to explore, and how far.
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
    patience: u32,
    checks: Checks<'a>,
    names: HashMap<(u32, u64), String>,
    reduced: bool,
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
    /// Explores jobs of so many ranks, 1 to 26.
    ///
    /// # Panics
    /// If it is another number.
    pub fn new(ranks: usize) -> Self {
        assert!((1..=MOST_RANKS).contains(&ranks), "{ranks} ranks can't be explored; 1 to 26 can");
        Explorer {
            nodes: (0..ranks as u32).collect(),
            caps: Caps::weakest(),
            states: 10_000_000,
            patience: 1_000,
            checks: Checks::default(),
            names: HashMap::new(),
            reduced: true,
            set_up: None,
            mortal: 0,
            together: false,
            watch: Box::new(|_| ControlFlow::Continue(())),
        }
    }

    /// Puts each rank on a node, numbered from 0 on; each rank has one of its own unless said.
    /// Nothing that operations do depends on it.
    ///
    /// # Panics
    /// If these are not as many as ranks, or a number below the highest is no rank's node.
    #[must_use]
    pub fn nodes(mut self, nodes: &[u32]) -> Self {
        assert_eq!(nodes.len(), self.nodes.len(), "a node for each rank");
        let highest = nodes.iter().copied().max().unwrap_or(0);
        assert!((0..highest).all(|node| nodes.contains(&node)), "nodes are numbered without gaps: {nodes:?}");
        self.nodes = nodes.into();
        self
    }

    /// Sets what the provider guarantees; [`Caps::weakest`] unless said. Of these, `put_order`,
    /// `coherent_atomics` and `notice_bits` matter here.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Stops at so many states; ten million unless said. Each takes 16 to 40 bytes.
    #[must_use]
    pub fn state_limit(mut self, states: u64) -> Self {
        self.states = states;
        self
    }

    /// Cuts paths on which a rank is given more than so many answers in one
    /// [step](crate::Probe::step); 1000 unless said.
    #[must_use]
    pub fn patience(mut self, answers: u32) -> Self {
        self.patience = answers;
        self
    }

    /// Sets what timelines call the word at byte `offset` of the symmetric region that is allocated
    /// as the `region`-th, from 0.
    #[must_use]
    pub fn name(mut self, region: u32, offset: u64, name: &str) -> Self {
        self.names.insert((region, offset), name.to_owned());
        self
    }

    /// Sets what timelines call a [fact](crate::Probe).
    #[must_use]
    pub fn name_fact(mut self, fact: u32, name: &str) -> Self {
        self.names.insert(Cells::name_of_fact(fact), name.to_owned());
        self
    }

    /// Takes no shortcut: all that a rank does is a move of its own, even what nobody else could
    /// notice. There are many more states and the same outcomes; this is how the explorer itself is
    /// checked. Counter-examples found so are replayed so.
    #[must_use]
    pub fn unreduced(mut self) -> Self {
        self.reduced = false;
        self
    }

    /// Explores one order only of what ranks do before what is of interest: rank `r` sets up until
    /// fact `first + r` is not 0. From when all are done on every order is explored, of what is
    /// still on its way, too; nobody dies before. A set-up that copies tables would else be all
    /// that there is to explore. [`Explorer::sample`] draws orders of the set-up as well.
    #[must_use]
    pub fn set_up(mut self, first: u32) -> Self {
        self.set_up = Some(first);
        self
    }

    /// Lets `rank` die at any moment before it has ended, or not at all; call it again for more
    /// ranks. The others learn of it, each at a moment of its own, or end without. [The
    /// crate](crate#the-loss-of-ranks) says what they see.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn mortal(mut self, rank: Rank) -> Self {
        assert!(rank.index() < self.nodes.len(), "{rank} of a job of {} ranks can't die", self.nodes.len());
        self.mortal |= bit(rank);
        self
    }

    /// Lets what a rank owns when its program returns live until the job ends, as it does where all
    /// ranks leave behind a last barrier, which has many orders of its own. Without this, regions
    /// go when their rank's program returns, and whoever still addresses them is told
    /// [`StaleRegion`](rdma_fabric::FabricError::StaleRegion). What is dropped earlier goes then in
    /// either case.
    #[must_use]
    pub fn leave_together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Adds what must hold in every state.
    #[must_use]
    pub fn always(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.always.push(named(name, check));
        self
    }

    /// Adds what must hold when all ranks have ended or died and nothing is on its way any more.
    #[must_use]
    pub fn at_end(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.at_end.push(named(name, check));
        self
    }

    /// Adds what must hold in some state: that something which should be possible is.
    #[must_use]
    pub fn possible(mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Self {
        self.checks.possible.push(named(name, check));
        self
    }

    /// Shows `watch` the progress now and then, and stops if it says so.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(&Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Explores what `program` makes for each rank. It is called often, and must make the same each
    /// time.
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

    /// Runs one schedule of a counter-example again, and tells what happens: what is wrong, if
    /// anything is, and the timeline.
    ///
    /// # Panics
    /// If `schedule` is not what a counter-example printed.
    pub fn replay<Fut>(self, schedule: &str, program: impl Fn(Fabric) -> Fut + 'a) -> (Option<String>, Vec<String>)
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
        search::follow(&mut world, &self.checks, &schedule.moves)
    }

    /// Runs `runs` jobs in random order, the first from `seed`, each further one from the next
    /// number. Stops at the first that goes wrong.
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
                    // The same again: only its timeline is of interest.
                    let _ = sample::run(&mut job, self.nodes.len(), &self.checks, seed);
                    sample.failure = Some(Failure { what, seed, timeline: job.timeline() });
                    break;
                }
            }
        }
        sample
    }

    /// Repeats one of the runs of [`Explorer::sample`], that from `seed`: returns how it accesses
    /// memory, and what goes wrong in the end, if anything does.
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
        let job = ranks.fold(LiveJob::on_nodes(self.nodes.clone(), self.caps, program), LiveJob::mortal);
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
