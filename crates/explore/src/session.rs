//! One run of one rank's program: the destination of its acts, and the source of the answers.
//!
//! A scripted run gets the same answers as before, in the same order, and so reaches the same
//! state; the first act beyond them ends it, by unwinding. A live run obtains its answers from the
//! world.

mod regions;

use crate::{
    act::{Act, Answer, HandleId},
    awaiting::{Polls, waiter_for},
    cell::Cells,
    live::Live,
    loss::Ranks,
    mix::Mix,
    operation::{Handles, Pieces},
    running::{Running, Task},
};
use rdma_fabric::{
    Rank,
    provider::{JobFacts, KeepAlive},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    hash::Hash,
    panic::resume_unwind,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Waker},
    thread,
};

/// After this many acts without an answer in between, the program will not end by itself.
const ENDLESS: usize = 10_000;

/// The payload that unwinds out of a scripted run at its end.
pub(crate) struct Frontier;

/// The world as a run sees it.
pub(crate) enum Source {
    Script(Vec<Answer>),
    Live(Rc<RefCell<Live>>),
}

pub(crate) struct Session {
    pub(crate) rank: Rank,
    pub(crate) facts: Arc<JobFacts>,
    pub(crate) cells: Rc<RefCell<Cells>>,
    /// The seal of places that this rank has resolved in this run.
    pub(crate) keep_alive: KeepAlive,
    /// Ranks that may die.
    pub(crate) mortal: Cell<Ranks>,
    /// Whether the regions that a rank owns when its program returns live until the job ends.
    pub(crate) together: Cell<bool>,
    source: Source,
    /// The number of answers of the script that have been given.
    given: Cell<usize>,
    /// Whether the run has ended; acts that its futures perform while being dropped have no effect.
    over: Cell<bool>,
    /// Whether the program has received an answer that did not let it continue since the last one
    /// that did.
    pub(crate) unready: Cell<bool>,
    /// Whether anything has happened since this flag was last cleared.
    pub(crate) moved: Cell<bool>,
    /// The futures that wait.
    pub(crate) polls: RefCell<Polls>,
    /// The rank whose loss has just ended a wait.
    pub(crate) hopeless: Cell<Option<Rank>>,
    /// Whether the script's last answer let the program continue.
    pub(crate) last_ready: Cell<bool>,
    /// Whether the program has returned.
    pub(crate) program_over: Cell<bool>,
    /// Whether the task that runs is the rank's only one.
    pub(crate) alone: Cell<bool>,
    /// The trail at the time when the script's last answer was requested.
    pub(crate) trail_before: Cell<u128>,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The notifications since the last answer of the script.
    reported: Vec<Act>,
    /// The act that found no answer.
    requested: Option<Act>,
    /// All notifications and questions, to compare runs.
    trail: Option<Mix>,
    slots: Handles,
    local_regions: u32,
    symmetric_regions: u32,
    /// The futures that have been detached and the helpers that have been started, until they first
    /// run.
    begun: Vec<Running>,
    /// The rank's own regions that were dropped, by index.
    dropped: BTreeSet<u32>,
    /// The regions in `dropped` whose drop may be due to the program's end.
    let_go: Vec<u32>,
    /// The last value that this rank stored in each part of its own cells.
    stored: BTreeMap<(u32, u64), u64>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.rank)
    }
}

/// The part of a run that belongs to the rank, in addition to the memory of its program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Own {
    slots: Vec<bool>,
    local_regions: u32,
    symmetric_regions: u32,
    dropped: BTreeSet<u32>,
    let_go: Vec<u32>,
}

impl Session {
    pub(crate) fn new(rank: Rank, facts: Arc<JobFacts>, cells: Rc<RefCell<Cells>>, source: Source) -> Rc<Self> {
        Rc::new(Session {
            rank,
            facts,
            cells,
            keep_alive: KeepAlive::new(()),
            mortal: Cell::new(0),
            together: Cell::new(false),
            source,
            given: Cell::new(0),
            over: Cell::new(false),
            unready: Cell::new(false),
            moved: Cell::new(false),
            polls: RefCell::default(),
            hopeless: Cell::new(None),
            last_ready: Cell::new(true),
            program_over: Cell::new(false),
            alone: Cell::new(true),
            trail_before: Cell::new(0),
            inner: RefCell::default(),
        })
    }

    pub(crate) fn others_that_may_die(&self) -> impl Iterator<Item = Rank> + use<> {
        let (me, mortal) = (self.rank, self.mortal.get());
        (0..Ranks::BITS).filter(move |rank| mortal >> rank & 1 == 1).map(Rank::new).filter(move |rank| *rank != me)
    }

    /// Returns whether acts of the program are ignored. A program that panics has ended: an act of
    /// its guards during unwinding would have to unwind a second time.
    fn has_ended(&self) -> bool {
        if !self.over.get() && thread::panicking() {
            self.over.set(true);
        }
        self.over.get()
    }

    /// Asks the world to answer an act; `None` when the run has ended.
    pub(crate) fn request(&self, act: Act) -> Option<Answer> {
        if self.has_ended() {
            return None;
        }
        self.let_go_before(&act);
        if let Act::Store(part, bits) = act {
            self.inner.borrow_mut().stored.insert((part.cell, part.mask), bits);
        }
        match &self.source {
            Source::Live(live) => Some(live.borrow_mut().answer(self.rank, &act)),
            Source::Script(script) => {
                let mut inner = self.inner.borrow_mut();
                let trail = inner.trail.get_or_insert_with(Mix::new);
                act.hash(trail);
                let given = self.given.get();
                if given + 1 == script.len() {
                    self.trail_before.set(trail.end());
                }
                if let Some(answer) = script.get(given) {
                    self.given.set(given + 1);
                    self.last_ready.set(true);
                    return Some(answer.clone());
                }
                inner.requested = Some(act);
                drop(inner);
                self.over.set(true);
                resume_unwind(Box::new(Frontier));
            }
        }
    }

    /// Ends a step, if the rank can forget its history: nothing is in flight and only its program
    /// runs.
    pub(crate) fn end_step(&self, result: u128) {
        let inner = self.inner.borrow();
        let may = self.alone.get() && inner.begun.is_empty() && !inner.slots.are_taken();
        drop(inner);
        if may {
            self.report(Act::Step(result));
        }
    }

    /// Implements [`crate::Probe::stored`].
    pub(crate) fn stored(&self) -> u128 {
        let mut mix = Mix::new();
        for ((cell, mask), bits) in &self.inner.borrow().stored {
            mix.add(u64::from(*cell));
            mix.add(*mask);
            mix.add(*bits);
        }
        mix.end()
    }

    pub(crate) fn report(&self, act: Act) {
        if self.has_ended() {
            return;
        }
        self.let_go_before(&act);
        self.continued();
        match &self.source {
            Source::Live(live) => live.borrow_mut().reported(self.rank, &act),
            Source::Script(script) => {
                let mut inner = self.inner.borrow_mut();
                act.hash(inner.trail.get_or_insert_with(Mix::new));
                if self.given.get() == script.len() {
                    inner.reported.push(act);
                }
                if inner.reported.len() > ENDLESS {
                    inner.requested = Some(Act::Endless);
                    drop(inner);
                    self.over.set(true);
                    resume_unwind(Box::new(Frontier));
                }
            }
        }
    }

    /// Records that the last answer satisfied the program, or that the program acted.
    pub(crate) fn continued(&self) {
        self.polls.borrow_mut().age();
        self.unready.set(false);
        self.moved.set(true);
        self.heard(true);
    }

    /// Records that the last answer did not satisfy the program.
    pub(crate) fn not_ready(&self) {
        self.unready.set(true);
        self.last_ready.set(false);
        self.heard(false);
    }

    fn heard(&self, ready: bool) {
        if let Source::Live(live) = &self.source {
            live.borrow_mut().heard(ready);
        }
    }

    pub(crate) fn end(&self) {
        self.over.set(true);
    }

    /// Records that the program has returned. Regions that it dropped since its last act stay
    /// registered if ranks leave together.
    pub(crate) fn returned(&self) {
        self.inner.borrow_mut().let_go.clear();
    }

    /// Returns whether all answers were given.
    pub(crate) fn caught_up(&self) -> bool {
        match &self.source {
            Source::Script(script) => self.given.get() == script.len(),
            Source::Live(_) => true,
        }
    }

    pub(crate) fn requested(&self) -> Option<Act> {
        self.inner.borrow_mut().requested.take()
    }

    pub(crate) fn reported_acts(&self) -> Vec<Act> {
        std::mem::take(&mut self.inner.borrow_mut().reported)
    }

    pub(crate) fn trail(&self) -> u128 {
        self.inner.borrow().trail.unwrap_or_default().end()
    }

    pub(crate) fn own(&self) -> Own {
        let inner = self.inner.borrow();
        Own {
            slots: inner.slots.up_to_the_last(),
            local_regions: inner.local_regions,
            symmetric_regions: inner.symmetric_regions,
            dropped: inner.dropped.clone(),
            let_go: inner.let_go.clone(),
        }
    }

    pub(crate) fn take_slot(&self, parts: Pieces) -> HandleId {
        self.inner.borrow_mut().slots.take(parts)
    }

    /// Frees the slot of an operation whose handle has been dropped. Returns the pieces of its
    /// result.
    pub(crate) fn free_slot(&self, slot: HandleId) -> Pieces {
        self.polls.borrow_mut().end(waiter_for(slot));
        self.inner.borrow_mut().slots.free(slot)
    }

    /// Detaches a future. Providers may poll it immediately or later.
    pub(crate) fn detach(&self, rest: Pin<Box<dyn Future<Output = ()>>>) {
        if self.has_ended() {
            return;
        }
        let mut rest: Task = Box::pin(async move {
            rest.await;
            Ok(())
        });
        let at_once = self.request(Act::Detach) == Some(Answer::Task(1));
        self.continued();
        if at_once && rest.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        self.inner.borrow_mut().begun.push(Running::rest(rest));
    }

    /// Starts a helper.
    pub(crate) fn start_helper(&self, name: &'static str, task: Task) {
        if !self.has_ended() {
            self.continued();
            self.inner.borrow_mut().begun.push(Running::helper(name, task));
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        !self.inner.borrow().begun.is_empty()
    }

    /// Takes the futures that have been detached and the helpers that have been started.
    pub(crate) fn begun(&self) -> Vec<Running> {
        std::mem::take(&mut self.inner.borrow_mut().begun)
    }
}
