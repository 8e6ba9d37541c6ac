//! A depth-first search of all states of a model.

use crate::{
    canonical,
    model::{Model, Violation},
    op::{Done, Move},
    state::State,
    step::Moves,
};
use std::{
    collections::{HashSet, VecDeque},
    fmt,
    hash::{BuildHasherDefault, Hasher},
    ops::ControlFlow,
};

/// Hashes a fingerprint by taking a part of it.
#[derive(Clone, Copy, Debug, Default)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are looked up");
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Known = BuildHasherDefault<FingerprintHasher>;

/// The progress of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The number of states seen.
    pub states: u64,
    /// The number of moves made from them.
    pub transitions: u64,
    /// The number of moves from the initial state to the current one.
    pub depth: usize,
}

/// The outcome of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All states were seen.
    Exhausted,
    /// The limit on states was reached and unexplored states remain, or the caller asked to stop.
    Stopped,
    /// A violation, and the moves that lead to it.
    Broken(Violation, Vec<String>),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of states seen; equivalent states [count as one](crate#states-that-count-as-one).
    pub states: u64,
    /// The number of moves made from them.
    pub transitions: u64,
    /// The number of moves in the longest path taken from the initial state.
    pub longest: usize,
    /// The number of proper end states.
    pub ends: u64,
    /// Whether all readers were inside at the same time in some state.
    pub together: bool,
    /// The outcome.
    pub verdict: Verdict,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { states, transitions, longest, .. } = self;
        write!(f, "{states} states, {transitions} transitions, longest path {longest}: ")?;
        match &self.verdict {
            Verdict::Exhausted => write!(f, "exhausted"),
            Verdict::Stopped => write!(f, "stopped there"),
            Verdict::Broken(wrong, path) => {
                write!(f, "{wrong}")?;
                path.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// A search of a [`Model`].
pub struct Search<'a> {
    model: &'a Model,
    limit: u64,
    at_once: bool,
    whole: bool,
    watch: Box<Watch<'a>>,
    look: Box<dyn FnMut(&State) + 'a>,
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Search({:?}, at most {} states)", self.model, self.limit)
    }
}

struct Frame {
    state: State,
    left: Moves,
    /// The move that led to this state.
    by: Option<Move>,
}

impl<'a> Search<'a> {
    /// Prepares a search of all states of `model`.
    pub fn new(model: &'a Model) -> Self {
        let watch = Box::new(|_: &Progress| ControlFlow::Continue(()));
        Search { model, limit: u64::MAX, at_once: true, whole: false, watch, look: Box::new(|_| ()) }
    }

    /// Stops at this number of states. Each takes 17 to 34 bytes, and up to 51 while the set grows.
    #[must_use]
    pub fn limit(mut self, states: u64) -> Self {
        self.limit = states;
        self
    }

    /// Makes no moves [at once](crate#what-happens-at-once): each becomes a separate transition.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.at_once = false;
        self
    }

    /// Does not treat any two states [as one](crate#states-that-count-as-one). The set then stores
    /// whole states of about 500 bytes each.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Reports the progress to `watch` from time to time, and stops if it returns `Break`.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(&Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Calls `look` once for each state.
    #[must_use]
    pub fn look(mut self, look: impl FnMut(&State) + 'a) -> Self {
        self.look = Box::new(look);
        self
    }

    /// Returns the state to which `by` leads from `state`.
    fn next(&self, mut state: State, by: Move, mut note: impl FnMut(Done)) -> Result<State, Violation> {
        let (done, went) = self.model.take(&mut state, by);
        note(done);
        went?;
        if self.at_once {
            self.model.settle(&mut state, note)?;
        }
        Ok(state)
    }

    fn first(&self, mut note: impl FnMut(Done)) -> Result<State, Violation> {
        let mut state = self.model.start();
        if self.at_once {
            self.model.settle(&mut state, &mut note)?;
        }
        Ok(state)
    }

    /// Searches all states of the model, or until the first violation.
    pub fn run(mut self) -> Report {
        let classes = (!self.whole).then(|| canonical::classes(self.model));
        let mut fingerprints: HashSet<u128, Known> = HashSet::default();
        let mut plain: HashSet<State> = HashSet::new();
        let model = self.model;
        let mut is_new = |state: &State| match &classes {
            Some(classes) => fingerprints.insert(canonical::fingerprint(model, classes, state)),
            None => plain.insert(*state),
        };
        let mut report =
            Report { states: 0, transitions: 0, longest: 0, ends: 0, together: false, verdict: Verdict::Exhausted };
        let mut path: Vec<Frame> = Vec::new();
        let mut broken = None;
        match self.first(|_| ()) {
            Ok(state) => {
                is_new(&state);
                self.found(state, None, &mut path, &mut report, &mut broken);
            }
            Err(wrong) => broken = Some((wrong, None)),
        }
        while broken.is_none() {
            let Some(top) = path.last_mut() else { break };
            let Some(by) = top.left.next() else {
                path.pop();
                continue;
            };
            let from = top.state;
            report.transitions += 1;
            if report.transitions.is_multiple_of(1 << 18) {
                let progress = Progress { states: report.states, transitions: report.transitions, depth: path.len() };
                if (self.watch)(&progress).is_break() {
                    report.verdict = Verdict::Stopped;
                    break;
                }
            }
            match self.next(from, by, |_| ()) {
                Ok(state) if is_new(&state) => {
                    if report.states == self.limit {
                        report.verdict = Verdict::Stopped;
                        break;
                    }
                    self.found(state, Some(by), &mut path, &mut report, &mut broken);
                }
                Ok(_) => {}
                Err(wrong) => broken = Some((wrong, Some(by))),
            }
        }
        if let Some((wrong, last)) = broken {
            let moves: Vec<Move> = path.iter().filter_map(|frame| frame.by).chain(last).collect();
            report.verdict = Verdict::Broken(wrong, self.told(&self.shortest().unwrap_or(moves)));
        }
        report
    }

    fn found(
        &mut self,
        state: State,
        by: Option<Move>,
        path: &mut Vec<Frame>,
        report: &mut Report,
        broken: &mut Option<(Violation, Option<Move>)>,
    ) {
        report.states += 1;
        (self.look)(&state);
        report.together |= self.model.all_readers_inside(&state);
        let left = self.model.moves(&state);
        if left.is_none() {
            match self.model.end(&state) {
                Ok(()) => report.ends += 1,
                Err(wrong) => *broken = Some((wrong, None)),
            }
        }
        path.push(Frame { state, left, by });
        report.longest = report.longest.max(path.len() - 1);
    }

    /// Returns a description of a path, one line per move.
    fn told(&self, moves: &[Move]) -> Vec<String> {
        let mut lines = Vec::new();
        let Ok(mut state) = self.first(|done| lines.push(done.to_string())) else { return lines };
        for by in moves {
            match self.next(state, *by, |done| lines.push(done.to_string())) {
                Ok(next) => state = next,
                Err(_) => break,
            }
        }
        lines
    }

    /// Returns the shortest path to a violation, if it is found within the limit on states.
    fn shortest(&self) -> Option<Vec<Move>> {
        const STATES: usize = 300_000;
        let classes = canonical::classes(self.model);
        let mut seen: HashSet<u128, Known> = HashSet::default();
        let mut ways: Vec<(usize, Option<Move>)> = vec![(0, None)];
        let mut queue = VecDeque::from([(self.first(|_| ()).ok()?, 0)]);
        let way = |ways: &[(usize, Option<Move>)], mut at: usize, last: Option<Move>| {
            let mut moves: Vec<Move> = last.into_iter().collect();
            while let (before, Some(by)) = ways[at] {
                moves.push(by);
                at = before;
            }
            moves.reverse();
            moves
        };
        while let Some((state, at)) = queue.pop_front() {
            let left = self.model.moves(&state);
            if left.is_none() && self.model.end(&state).is_err() {
                return Some(way(&ways, at, None));
            }
            for by in left {
                match self.next(state, by, |_| ()) {
                    Err(_) => return Some(way(&ways, at, Some(by))),
                    Ok(state) => {
                        let key = canonical::fingerprint(self.model, &classes, &state);
                        if ways.len() < STATES && seen.insert(key) {
                            ways.push((at, Some(by)));
                            queue.push_back((state, ways.len() - 1));
                        }
                    }
                }
            }
        }
        None
    }
}
