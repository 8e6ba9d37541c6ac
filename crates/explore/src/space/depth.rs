//! The search of all states.

use super::{End, Halt, HaltOf, Key, Outcome, OutcomeOf, Progress, System};
use std::{collections::HashSet, fmt, ops::ControlFlow};

type EndOf<S> = End<<S as System>::Violation, <S as System>::Move>;

/// The number of transitions between two reports of progress.
const LOOK: u64 = 1 << 16;

type Watch<'w> = dyn FnMut(&Progress) -> ControlFlow<()> + 'w;

/// A depth-first search.
pub struct Search<'w> {
    limit: u64,
    watch: Option<&'w mut Watch<'w>>,
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Search(at most {} states)", self.limit)
    }
}

impl Default for Search<'_> {
    fn default() -> Self {
        Search::new()
    }
}

impl<'w> Search<'w> {
    /// Prepares a search of all states.
    pub fn new() -> Self {
        Search { limit: u64::MAX, watch: None }
    }

    /// Sets the number of states to visit; the first one always is. The search stops where it
    /// meets one more, which the [number of states](Progress::states) includes.
    #[must_use]
    pub fn limit(mut self, states: u64) -> Self {
        self.limit = states;
        self
    }

    /// Calls `watch` with the progress every 65,536 transitions, and stops if it returns `Break`.
    #[must_use]
    pub fn watch(mut self, watch: &'w mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Visits all states of `system`, the moves of each in their order, up to the first violation.
    pub fn run<S: System>(self, system: &mut S) -> Result<OutcomeOf<S>, S::Abort> {
        let mut path = Path { system, frames: Vec::new(), progress: Progress::default() };
        let end = path.follow(self)?;
        Ok(Outcome { progress: path.progress, end })
    }
}

/// One state on the path that is being followed.
struct Frame<S: System> {
    state: S::State,
    moves: Vec<S::Move>,
    /// The number of `moves` that were made.
    made: usize,
}

/// The path that is being followed. Frames below its current depth are kept for their allocations.
struct Path<'s, S: System> {
    system: &'s mut S,
    frames: Vec<Frame<S>>,
    progress: Progress,
}

impl<S: System> Path<'_, S> {
    fn follow(&mut self, mut search: Search<'_>) -> Result<EndOf<S>, S::Abort> {
        let first = match self.system.first() {
            Ok(first) => first,
            Err(halt) => return Ok(self.halted(halt, 0)?.unwrap_or(End::Exhausted)),
        };
        // The keys of the states on the path.
        let mut keys = vec![self.system.key(&first)];
        let mut visited: HashSet<S::Key, <S::Key as Key>::Build> = HashSet::from_iter([keys[0].clone()]);
        self.frames.push(Frame { state: first, moves: Vec::new(), made: 0 });
        self.progress.states = 1;
        if let Some(end) = self.enter(0)? {
            return Ok(end);
        }
        let mut depth = 0;
        loop {
            if self.frames[depth].made == self.frames[depth].moves.len() {
                if depth == 0 {
                    return Ok(End::Exhausted);
                }
                depth -= 1;
                continue;
            }
            if self.frames.len() == depth + 1 {
                let state = self.frames[depth].state.clone();
                self.frames.push(Frame { state, moves: Vec::new(), made: 0 });
            }
            let (above, below) = self.frames.split_at_mut(depth + 1);
            let (here, next) = (&mut above[depth], &mut below[0]);
            let which = here.moves[here.made];
            here.made += 1;
            next.state.clone_from(&here.state);
            self.progress.transitions += 1;
            if self.progress.transitions.is_multiple_of(LOOK) {
                self.progress.depth = depth;
                if search.watch.as_mut().is_some_and(|watch| watch(&self.progress).is_break()) {
                    return Ok(End::Asked);
                }
            }
            if let Err(halt) = self.system.apply(&mut next.state, which) {
                match self.halted(halt, depth + 1)? {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            let key = self.system.key(&next.state);
            keys.truncate(depth + 1);
            if !visited.insert(key.clone()) {
                self.progress.circles += u64::from(keys.contains(&key));
                continue;
            }
            self.progress.states += 1;
            if self.progress.states > search.limit {
                return Ok(End::Limit);
            }
            keys.push(key);
            depth += 1;
            self.progress.longest = self.progress.longest.max(depth);
            if let Some(end) = self.enter(depth)? {
                return Ok(end);
            }
        }
    }

    /// Enters the state at `depth`, which was not known before: checks it, and collects its moves.
    fn enter(&mut self, depth: usize) -> Result<Option<EndOf<S>>, S::Abort> {
        let frame = &mut self.frames[depth];
        frame.made = 0;
        frame.moves.clear();
        match self.system.visit(&frame.state, &mut frame.moves) {
            Ok(ends) => {
                self.progress.ends += u64::from(ends);
                Ok(None)
            }
            Err(halt) => {
                frame.moves.clear();
                self.halted(halt, depth)
            }
        }
    }

    /// Handles a halt after the first `moves` moves of the path. Returns `None` to continue
    /// elsewhere.
    fn halted(&mut self, halt: HaltOf<S>, moves: usize) -> Result<Option<EndOf<S>>, S::Abort> {
        match halt {
            Halt::Violation(wrong) => {
                let made = self.frames[..moves].iter().map(|frame| frame.moves[frame.made - 1]);
                Ok(Some(End::Violated(wrong, made.collect())))
            }
            Halt::Pruned => {
                self.progress.pruned += 1;
                Ok(None)
            }
            Halt::Abort(why) => Err(why),
        }
    }
}
