//! Jobs whose programs run live and only once: for random orders, and for drivers that choose each
//! event themselves.
//!
//! The rules are those of the exploration, with one difference: a rank's CPU runs as far as it can
//! in one event.

mod events;

pub use events::Event;

use crate::{
    acknowledged::Execution,
    act::{Act, Answer},
    cell::Cells,
    checks::View,
    cpu,
    effect::Effect,
    fabric::{Explored, facts},
    loss::{Ranks, bit},
    running::{Running, Task},
    session::{Session, Source},
    state::{At, State},
    timeline::Timeline,
    words,
};
use rdma_fabric::{Caps, Fabric, ProgramResult, Rank};
use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    task::Poll,
};

/// The network of a live job.
pub(crate) struct Live {
    state: State,
    cells: Rc<RefCell<Cells>>,
    /// Ranks that may be able to continue.
    awake: Vec<bool>,
    /// The earliest deadline of each rank that has not passed.
    deadlines: Vec<Option<u64>>,
    /// Ranks that may die.
    mortal: Ranks,
    timeline: Option<Timeline>,
    /// A rank's question that may be a wait; the next call of `heard` decides.
    look: Option<(Rank, Act, Answer)>,
    effects: Option<Vec<Effect>>,
}

impl Live {
    pub(crate) fn answer(&mut self, rank: Rank, act: &Act) -> Answer {
        let answer = self.state.request(rank, act, true);
        self.state.answered(rank, act, &answer);
        if let (Act::Sleep(until), Answer::Pending) = (act, &answer) {
            let deadline = &mut self.deadlines[rank.index()];
            *deadline = Some(deadline.map_or(*until, |earlier| earlier.min(*until)));
        }
        if let Some(timeline) = &mut self.timeline {
            if matches!(act, Act::Watch(_) | Act::NextNotice | Act::Sleep(_)) {
                self.look = Some((rank, act.clone(), answer.clone()));
            } else {
                timeline.acts(&self.cells.borrow(), rank, act, &answer, answer != Answer::Pending);
            }
        }
        if let Some(effects) = &mut self.effects {
            effects.extend(Effect::of_act(&self.cells.borrow(), rank, act, &answer));
        }
        answer
    }

    /// Records events in the timeline, if there is one.
    fn note(&mut self, report: impl FnOnce(&mut Timeline, &Cells, &State)) {
        if let Some(timeline) = &mut self.timeline {
            report(timeline, &self.cells.borrow(), &self.state);
        }
    }

    /// Records whether the last answer satisfied the program.
    pub(crate) fn heard(&mut self, ready: bool) {
        let (Some(timeline), Some((rank, act, answer))) = (&mut self.timeline, self.look.take()) else { return };
        let cells = self.cells.borrow();
        if ready {
            timeline.acts(&cells, rank, &act, &answer, true);
        } else {
            timeline.waits(rank, &words::awaited(&cells, &self.state, rank, &[act]));
        }
    }

    pub(crate) fn reported(&mut self, rank: Rank, act: &Act) {
        self.state.report(rank, act);
        if let Some(timeline) = &mut self.timeline {
            timeline.record(&self.cells.borrow(), rank, act);
        }
    }
}

/// A job in which the caller chooses each next event.
pub struct LiveJob {
    live: Rc<RefCell<Live>>,
    caps: Caps,
    /// The way in which atomics take effect.
    pub(crate) execution: Execution,
    sessions: Vec<Rc<Session>>,
    /// Each rank's program, the futures it has detached, and its helpers.
    tasks: Vec<Vec<Running>>,
}

impl fmt::Debug for LiveJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveJob({} ranks, {} tasks)", self.tasks.len(), self.tasks.iter().map(Vec::len).sum::<usize>())
    }
}

impl LiveJob {
    /// Creates a job in which every rank is about to begin the future that `program` makes for it.
    pub fn new<Fut>(ranks: usize, caps: Caps, program: impl Fn(Fabric) -> Fut) -> Self
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        LiveJob::on_nodes((0..ranks as u32).collect(), caps, program)
    }

    /// Creates a job in which every rank is about to begin, with the given node of each rank, as in
    /// [`Explorer::nodes`](crate::Explorer::nodes).
    pub(crate) fn on_nodes<Fut>(nodes: Arc<[u32]>, caps: Caps, program: impl Fn(Fabric) -> Fut) -> Self
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        let ranks = nodes.len();
        let facts = facts(nodes, caps);
        let cells = Rc::new(RefCell::new(Cells::default()));
        let mut state = State::default();
        state.ranks = vec![At { local: 0, clock: 0 }; ranks];
        let live = Live {
            state,
            cells: cells.clone(),
            awake: vec![true; ranks],
            deadlines: vec![None; ranks],
            mortal: 0,
            timeline: None,
            look: None,
            effects: None,
        };
        let live = Rc::new(RefCell::new(live));
        let (mut sessions, mut tasks) = (Vec::new(), Vec::new());
        for rank in 0..ranks as u32 {
            let session = Session::new(Rank::new(rank), facts.clone(), cells.clone(), Source::Live(live.clone()));
            let run = program(Explored::fabric(&session));
            let task: Task = Box::pin(async move { run.await.map_err(|error| format!("an error: {error}")) });
            tasks.push(vec![Running::program(task)]);
            sessions.push(session);
        }
        LiveJob { live, caps, execution: Execution::Memory, sessions, tasks }
    }

    /// Lets `rank` die at any moment before it has ended, as
    /// [`Explorer::mortal`](crate::Explorer::mortal) does.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn mortal(self, rank: Rank) -> Self {
        assert!(rank.index() < self.tasks.len(), "{rank} of a job of {} ranks can't die", self.tasks.len());
        let mut live = self.live.borrow_mut();
        live.mortal |= bit(rank);
        self.sessions.iter().for_each(|session| session.mortal.set(live.mortal));
        drop(live);
        self
    }

    /// Lets ranks leave together at the end, as
    /// [`Explorer::leave_together`](crate::Explorer::leave_together) does.
    #[must_use]
    pub fn leave_together(self) -> Self {
        self.sessions.iter().for_each(|session| session.together.set(true));
        self
    }

    /// Records a timeline from now on.
    pub(crate) fn record(&mut self, names: &HashMap<(u32, u64), String>) {
        let live = &mut *self.live.borrow_mut();
        live.timeline = Some(Timeline::default());
        live.cells.borrow_mut().names.clone_from(names);
    }

    /// Returns the timeline so far.
    pub(crate) fn timeline(&mut self) -> Vec<String> {
        let live = &mut *self.live.borrow_mut();
        let mut timeline = live.timeline.take().unwrap_or_default();
        timeline.ends(&live.cells.borrow(), &live.state);
        timeline.into_lines()
    }

    /// Records memory accesses from now on.
    pub(crate) fn keep_effects(&mut self) {
        self.live.borrow_mut().effects = Some(Vec::new());
    }

    /// Returns the memory accesses so far.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        self.live.borrow_mut().effects.take().unwrap_or_default()
    }

    /// Lets `event` happen.
    ///
    /// # Errors
    /// The failure of a rank's program, including a panic.
    pub fn act(&mut self, event: Event) -> Result<(), String> {
        let mut borrowed = self.live.borrow_mut();
        let live = &mut *borrowed;
        match event {
            Event::Happen(place) => {
                let item = live.state.items[place];
                live.note(|timeline, cells, state| timeline.happens(cells, state, place));
                if let Some(effects) = &mut live.effects {
                    effects.extend(Effect::of_item(&live.cells.borrow(), &live.state, place));
                }
                live.state.happen(place, self.execution);
                for (rank, awake) in live.awake.iter_mut().enumerate() {
                    // An atomic may also complete others' on an overlapping word.
                    let all = self.execution != Execution::Memory;
                    *awake |= all || rank == item.by.index() || rank == item.target.index();
                }
            }
            Event::Begin(place) => {
                live.note(|timeline, cells, state| timeline.begins(cells, state, place));
                live.state.begin(place);
            }
            Event::Write(place) => {
                live.note(|timeline, cells, state| timeline.writes_out(cells, state, place));
                let target = live.state.unwritten[place].at.rank;
                let woken = live.state.write_out(place) | bit(target);
                live.awake.iter_mut().enumerate().for_each(|(rank, awake)| *awake |= woken >> rank & 1 == 1);
            }
            Event::Tick(rank) => {
                let clock = &mut live.state.ranks[rank.index()].clock;
                *clock = live.deadlines[rank.index()].take().unwrap_or(0).max(*clock);
                live.awake[rank.index()] = true;
            }
            Event::Learn { by, lost } => {
                live.note(|timeline, _, _| timeline.record_loss(by, lost));
                live.state.learn(by, lost);
                live.awake[by.index()] = true;
            }
            Event::Die(rank) => {
                live.note(|timeline, _, _| timeline.dies(rank));
                live.state.die(rank);
                (live.awake[rank.index()], live.deadlines[rank.index()]) = (false, None);
                drop(borrowed);
                // Acts that its futures perform while being dropped have no effect.
                self.sessions[rank.index()].end();
                self.tasks[rank.index()].clear();
            }
            Event::Go(rank) => {
                live.awake[rank.index()] = false;
                drop(borrowed);
                return self.go(rank);
            }
        }
        Ok(())
    }

    /// Polls all futures of a rank, and those that they detach.
    ///
    /// # Errors
    /// Those of [`LiveJob::act`].
    pub fn go(&mut self, rank: Rank) -> Result<(), String> {
        let (tasks, session) = (&mut self.tasks[rank.index()], &self.sessions[rank.index()]);
        let mut batch = std::mem::take(tasks);
        while !batch.is_empty() {
            session.moved.set(false);
            for mut task in batch {
                match catch_unwind(AssertUnwindSafe(|| cpu::while_exploring(|| task.poll(session)))) {
                    Ok(Poll::Pending) => tasks.push(task),
                    Ok(Poll::Ready(Ok(()))) => {
                        drop(task);
                        session.returned();
                    }
                    Ok(Poll::Ready(Err(error))) => return Err(format!("{rank}: {error}")),
                    Err(panic) => return Err(format!("{rank}: {}", cpu::panic_message(&*panic))),
                }
            }
            batch = session.begun();
            // A program and its helpers may wait for each other's writes.
            if session.moved.get() && (tasks.iter().chain(&batch).any(Running::is_helper)) {
                batch.append(tasks);
            }
        }
        if tasks.is_empty() {
            let live = &mut *self.live.borrow_mut();
            live.deadlines[rank.index()] = None;
            live.timeline.iter_mut().for_each(|timeline| timeline.done(rank));
            if live.mortal & bit(rank) != 0 && !live.state.losses.is_dead(rank) {
                live.state.losses.end(rank);
            }
        }
        Ok(())
    }

    /// Returns whether a rank has ended, with all futures that it detached, or has died.
    pub fn has_ended(&self, rank: Rank) -> bool {
        self.tasks[rank.index()].is_empty()
    }

    /// Calls `look` with a view of memory and facts.
    pub fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let live = self.live.borrow();
        let cells = live.cells.borrow();
        look(&View::new(&live.state, &cells))
    }

    pub(crate) fn with_state<T>(&self, look: impl FnOnce(&State, &Cells) -> T) -> T {
        let live = self.live.borrow();
        let cells = live.cells.borrow();
        look(&live.state, &cells)
    }
}

impl Drop for LiveJob {
    fn drop(&mut self) {
        // Acts that tasks perform while being dropped have no effect.
        self.sessions.iter().for_each(|session| session.end());
    }
}
