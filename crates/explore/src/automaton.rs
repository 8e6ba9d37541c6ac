//! The behaviour of ranks, built on demand: for each local state and each answer, the notifications
//! that the program emits and its next state.
//!
//! A future can't be cloned, but the answers given to a deterministic program determine its state.
//! So a *local state* is a history of answers, which can be reached again by running the program
//! from its start. This is done once for each local state and answer; the result is stored in a
//! table. Exploring global states, which are far more numerous, never runs a program.

mod audit;

use crate::{
    act::{Act, Answer},
    cpu::{JobConfig, Outcome},
    dropped::Holding,
    mix::{Mix, MixMap, SmallSet},
};
use rdma_fabric::Rank;
use std::{hash::Hash, rc::Rc};

/// The number of a local state.
pub(crate) type LocalId = u32;

/// A state of one rank: it is about to do `act`.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) act: Act,
    /// Its live tasks, by bits.
    pub(crate) tasks: u64,
    edges: Vec<Edge>,
    rank: Rank,
    /// The preceding state and the answer given there; a first state is its own predecessor.
    before: (LocalId, Answer),
    /// The number of answers since the end of the last step.
    age: u32,
    /// Whether the rank waits for one operation and nothing else; `None` until this was computed.
    sole: Option<bool>,
    /// For a first state, the notifications before the first answer.
    reported: Rc<[Act]>,
    /// A hash of all notifications and questions on the path to this state.
    trail: u128,
    /// Other histories that led here when a step ended.
    others: Vec<(LocalId, Answer)>,
}

impl Local {
    pub(crate) fn is_alone(&self) -> bool {
        self.tasks.count_ones() == 1
    }

    /// Returns the tasks that may run next, or the other choices of the rank's next move, by bits;
    /// `None` if there is no choice.
    pub(crate) fn choices(&self) -> Option<u64> {
        match self.act {
            Act::Choose => Some(self.tasks),
            Act::Detach => Some(0b11),
            _ => None,
        }
    }

    pub(crate) fn reported(&self) -> &Rc<[Act]> {
        &self.reported
    }
}

/// The consequences of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    answer: Answer,
    /// The notifications that the program emits before its next question.
    pub(crate) reported: Rc<[Act]>,
    /// The next state; `None` if the rank waits as before.
    pub(crate) to: Option<LocalId>,
    /// Whether the answer let the program continue.
    pub(crate) ready: bool,
    /// Whether the rank has more than one task from now on.
    splits: bool,
    /// Whether the program emits any notification other than [`Act::Reach`].
    does: bool,
}

impl Edge {
    /// Returns whether this is more than a check of a condition that does not hold yet.
    pub(crate) fn moves(&self) -> bool {
        self.ready || self.splits || self.does
    }
}

/// The local states of all ranks.
pub(crate) struct Automaton<'a> {
    pub(crate) job: JobConfig<'a>,
    locals: Vec<Local>,
    /// States after the end of a step.
    steps: MixMap<LocalId>,
    /// The largest number of answers that a step may take.
    pub(crate) patience: u32,
    /// The number of times a program was run.
    pub(crate) runs: u64,
}

impl<'a> Automaton<'a> {
    pub(crate) fn new(job: JobConfig<'a>, patience: u32) -> Self {
        Automaton { job, locals: Vec::new(), steps: MixMap::default(), patience, runs: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.locals.len()
    }

    #[inline]
    pub(crate) fn local(&self, id: LocalId) -> &Local {
        &self.locals[id as usize]
    }

    /// Returns a rank's first state.
    pub(crate) fn start(&mut self, rank: Rank) -> LocalId {
        if let Some(known) = self.locals.iter().position(|local| local.rank == rank) {
            return known as LocalId;
        }
        let id = self.locals.len() as LocalId;
        let outcome = self.run(rank, Vec::new());
        let reported = outcome.reported.clone().into();
        self.push(rank, (id, Answer::Done), 0, outcome);
        self.locals[id as usize].reported = reported;
        id
    }

    /// Forgets everything learned, because programs will get different answers from now on.
    pub(crate) fn forget(&mut self) {
        self.locals.clear();
        self.steps.clear();
    }

    /// Returns whether a rank in state `id` has reached `holding` since its last act that is
    /// `noticed`.
    pub(crate) fn has_just_reached(&self, id: LocalId, holding: Holding, noticed: impl Fn(&Act) -> bool) -> bool {
        let reached = |reported: &[Act]| reported.contains(&Act::Reach(holding));
        let (mut known, mut todo) = (SmallSet::from_iter([id]), vec![id]);
        while let Some(id) = todo.pop() {
            let local = &self.locals[id as usize];
            if reached(&local.reported) {
                return true;
            }
            for (before, answer) in std::iter::once(&local.before).chain(&local.others) {
                let from = &self.locals[*before as usize];
                if from.edges.iter().any(|edge| edge.answer == *answer && reached(&edge.reported)) {
                    return true;
                }
                if !noticed(&from.act) && known.insert(*before) {
                    todo.push(*before);
                }
            }
        }
        false
    }

    fn run(&mut self, rank: Rank, script: Vec<Answer>) -> Outcome {
        self.runs += 1;
        self.job.run(rank, script)
    }

    fn push(&mut self, rank: Rank, before: (LocalId, Answer), age: u32, outcome: Outcome) -> LocalId {
        let act = match outcome.next {
            Some(_) if age > self.patience => Act::Endless,
            Some(act) => act,
            None => Act::Failed("the program waits before it does anything".into()),
        };
        self.locals.push(Local {
            act,
            tasks: outcome.tasks,
            edges: Vec::new(),
            rank,
            before,
            age,
            sole: None,
            reported: Rc::from([]),
            trail: outcome.trail,
            others: Vec::new(),
        });
        self.locals.len() as LocalId - 1
    }

    /// Returns the answers that led to a state.
    fn history(&self, mut id: LocalId) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            let (before, answer) = &self.locals[id as usize].before;
            if *before == id {
                answers.reverse();
                return answers;
            }
            answers.push(answer.clone());
            id = *before;
        }
    }

    /// Returns the edge that `answer` takes from `id`.
    #[inline]
    pub(crate) fn edge(&mut self, id: LocalId, answer: &Answer) -> &Edge {
        let edges = &self.locals[id as usize].edges;
        let place = match edges.iter().position(|edge| edge.answer == *answer) {
            Some(place) => place,
            None => self.learn(id, answer),
        };
        &self.locals[id as usize].edges[place]
    }

    #[cold]
    fn learn(&mut self, id: LocalId, answer: &Answer) -> usize {
        let (rank, age) = (self.locals[id as usize].rank, self.locals[id as usize].age);
        let mut script = self.history(id);
        script.push(answer.clone());
        let mut outcome = self.run(rank, script);
        if outcome.trail_before != self.locals[id as usize].trail {
            let what = "the program is not deterministic: told the same, it did something else than before";
            outcome.next = Some(Act::Failed(what.into()));
        }
        // Running a task is not progress by itself.
        let ready = outcome.ready && self.locals[id as usize].act != Act::Choose;
        let splits = self.locals[id as usize].is_alone() && outcome.next == Some(Act::Choose);
        let reported: Rc<[Act]> = Rc::from(&outcome.reported[..]);
        let to = match outcome.next {
            None => None,
            Some(_) => Some(match step_of(rank, &outcome) {
                None => self.push(rank, (id, answer.clone()), age + 1, outcome),
                Some(step) => match self.steps.get(&step) {
                    Some(known) => {
                        let known = *known;
                        self.locals[known as usize].others.push((id, answer.clone()));
                        known
                    }
                    None => {
                        let new = self.push(rank, (id, answer.clone()), 0, outcome);
                        self.steps.insert(step, new);
                        new
                    }
                },
            }),
        };
        let edges = &mut self.locals[id as usize].edges;
        let does = reported.iter().any(|act| !matches!(act, Act::Reach(_)));
        edges.push(Edge { answer: answer.clone(), reported, to, ready, splits, does });
        edges.len() - 1
    }

    /// Returns whether `id` waits for one operation and nothing else, so that it continues as soon
    /// as that operation is complete, regardless of other events.
    pub(crate) fn is_sole(&mut self, id: LocalId) -> bool {
        if let Some(sole) = self.locals[id as usize].sole {
            return sole;
        }
        let sole = matches!(self.local(id).act, Act::Await(_)) && self.local(id).is_alone() && {
            let edge = self.edge(id, &Answer::Pending);
            edge.to.is_none() && !edge.moves()
        };
        self.locals[id as usize].sole = Some(sole);
        sole
    }
}

/// Returns a hash that identifies the state after the end of a step; `None` if no step ended.
fn step_of(rank: Rank, outcome: &Outcome) -> Option<u128> {
    let last = outcome.reported.iter().rposition(|act| matches!(act, Act::Step(_)))?;
    let mut mix = Mix::new();
    rank.number().hash(&mut mix);
    outcome.reported[last..].hash(&mut mix);
    outcome.next.hash(&mut mix);
    outcome.own.hash(&mut mix);
    outcome.tasks.hash(&mut mix);
    Some(mix.end())
}
