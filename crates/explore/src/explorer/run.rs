//! Running an exploration: search, restart, and report.

use super::Explorer;
use crate::{
    acknowledged::Unread,
    automaton::Automaton,
    cell::Cells,
    cpu::{JobConfig, Start},
    fabric::facts,
    report::{CounterExample, Report, Stop, Verdict},
    schedule::Schedule,
    search::{self, Again, Runs},
    space::{self, End, Search},
    world::{Move, World},
};
use std::{cell::RefCell, rc::Rc};

impl Explorer<'_> {
    /// Executes a rank's atomics on its own memory by its CPU. Where
    /// [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not promised, they then
    /// occur in the middle of other ranks' atomics, and are lost: such a provider breaks the
    /// contract (O6), and protocols over it must fail. This mutant shows that a check can fail.
    /// Only exhaustive explorations support it, not [random runs](Explorer::sample).
    #[must_use]
    pub fn own_atomics_by_cpu(mut self) -> Self {
        self.own_by_cpu = true;
        self
    }

    /// Explores network interfaces that acknowledge operations before their effects are visible, as
    /// InfiniBand's may, under a provider that waits for a read behind them, on the same queue pair,
    /// where the contract requires visibility. Puts are so in every exploration: a flush is the
    /// read. Here an atomic, too, is executed before its word is written: other atomics, and
    /// operations of its poster, find the new value at once; CPUs and operations of other ranks find
    /// it later, at the latest when the read behind it has returned and its handle is complete. A
    /// put or store to the word in between is lost.
    ///
    /// Has no effect where [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is
    /// promised. Two values that atomics write to a word without a CPU seeing the first of them may
    /// be one write.
    #[must_use]
    pub fn acknowledged(mut self) -> Self {
        self.acknowledged = true;
        self
    }

    /// Leaves out the reads behind some operations, under [`Explorer::acknowledged`]: such a
    /// provider breaks the contract, and protocols over it may fail. This mutant shows that a check
    /// can fail, and which protocols need the read. [Random runs](Explorer::sample) do not support
    /// [`Unread::Flushes`].
    #[must_use]
    pub fn without_read(mut self, unread: Unread) -> Self {
        self.unread = Some(unread);
        self
    }

    /// Returns whether atomics are also guaranteed to be atomic with respect to puts and stores.
    pub fn promises_coherence(&self) -> bool {
        self.caps.coherent_atomics
    }

    pub(super) fn world<'s>(&self, start: &'s Start<'s>) -> World<'s> {
        let cells = Rc::new(RefCell::new(Cells::named(&self.names)));
        cells.borrow_mut().contested.all = !self.reduced;
        cells.borrow_mut().acknowledged = self.acknowledged && self.reduced;
        let job = JobConfig {
            facts: facts(self.nodes.clone(), self.caps),
            start,
            cells,
            mortal: self.mortal,
            together: self.together,
        };
        World {
            automaton: Automaton::new(job, self.patience),
            order: self.caps.put_order,
            coherent: self.caps.coherent_atomics,
            own_by_cpu: self.own_by_cpu,
            acknowledged: self.acknowledged,
            unread: self.unread,
            reduced: self.reduced,
            set_up: self.set_up,
            timeline: None,
        }
    }

    pub(super) fn explore(mut self, start: &Start<'_>) -> Report {
        let mut world = self.world(start);
        let mut restarts = 0;
        let (verdict, progress, parted, endless) = loop {
            let mut runs = Runs::new(&mut world, &self.checks);
            let search = Search::new().limit(self.states).watch(&mut *self.watch);
            let outcome = search.run(&mut runs);
            let (parted, endless) = (runs.parted, runs.endless);
            let verdict = outcome.and_then(|outcome| {
                let verdict = self.verdict(&mut world, outcome.end, outcome.progress.pruned)?;
                Ok((verdict, outcome.progress))
            });
            match verdict {
                Ok((verdict, progress)) => break (verdict, progress, parted, endless.into_values().collect()),
                Err(Again) => {
                    restarts += 1;
                    let mut cells = world.automaton.job.cells.borrow_mut();
                    cells.grown = false;
                    let contested = std::mem::take(&mut cells.contested.grown);
                    drop(cells);
                    if contested {
                        world.automaton.forget();
                    }
                }
            }
        };
        let (compared, contradiction) = world.automaton.audit();
        Report {
            states: progress.states,
            transitions: progress.transitions,
            longest: progress.longest,
            ends: progress.ends,
            circles: progress.circles,
            cut: progress.pruned,
            parted,
            endless,
            local_states: world.automaton.len() as u64,
            runs: world.automaton.runs,
            restarts,
            possible: self.checks.seen(),
            contradiction,
            compared,
            verdict,
        }
    }

    fn verdict(&self, world: &mut World<'_>, end: End<String, Move>, cut: u64) -> Result<Verdict, Again> {
        Ok(match end {
            End::Exhausted if cut > 0 => Verdict::Stopped(Stop::Steps(self.patience)),
            End::Exhausted => Verdict::Exhausted,
            End::Limit => Verdict::Stopped(Stop::States(self.states)),
            End::Asked => Verdict::Stopped(Stop::Asked),
            End::Violated(what, moves) => Verdict::Violated(Box::new(self.example(world, what, moves)?)),
        })
    }

    /// Returns the counter-example, replaced by a shortest one if that is cheap to find.
    fn example(&self, world: &mut World<'_>, what: String, moves: Vec<Move>) -> Result<CounterExample, Again> {
        let shorter = space::shortest(&mut Runs::new(world, &self.checks), self.near)?;
        let shortest = shorter.is_some();
        let (what, moves) = shorter.unwrap_or((what, moves));
        let (again, timeline) = search::follow(world, &self.checks, &moves);
        let cells = world.automaton.job.cells.borrow();
        let (shared, contested) = (cells.shared(), cells.contested.iter().collect());
        Ok(CounterExample {
            what: again.unwrap_or(what),
            moves: moves.len(),
            schedule: Schedule { shared, contested, moves }.to_string(),
            shortest,
            timeline,
        })
    }
}
