//! Visits all states, depth first; once a violation is found, breadth first to find the shortest
//! path to one.

use crate::{
    checks::Checks,
    mix::{MixMap, MixSet},
    state::State,
    timeline::Timeline,
    world::{Halt, Move, World},
};
use rdma_fabric::Rank;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::ControlFlow,
};

/// Figures of a search in progress.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Different states so far.
    pub states: u64,
    /// Transitions so far.
    pub transitions: u64,
    /// Moves on the path that is being followed.
    pub depth: usize,
    /// Moves on the longest path so far.
    pub longest: usize,
    /// States so far in which all ranks had ended or died.
    pub ends: u64,
    pub(crate) circles: u64,
    pub(crate) cut: u64,
    pub(crate) parted: u64,
}

/// The end of a search.
#[derive(Debug)]
pub(crate) enum End {
    All,
    Limit,
    Asked,
    Wrong(String, Vec<Move>),
}

/// One state on the path that is being followed.
#[derive(Default)]
struct Frame {
    state: State,
    moves: Vec<Move>,
    next: usize,
}

pub(crate) struct Search<'s, 'a> {
    pub(crate) world: &'s mut World<'a>,
    pub(crate) checks: &'s Checks<'a>,
    pub(crate) limit: u64,
    pub(crate) watch: &'s mut dyn FnMut(&Progress) -> ControlFlow<()>,
    pub(crate) progress: Progress,
    /// For each rank with an endless step, the acts that it repeats there.
    pub(crate) endless: BTreeMap<Rank, String>,
}

/// The number of transitions between two reports of progress.
const LOOK: u64 = 1 << 16;

impl Search<'_, '_> {
    /// Visits all states. The only error is [`Halt::Again`], for the caller to handle.
    pub(crate) fn depth_first(&mut self) -> Result<End, Halt> {
        let mut visited = MixSet::default();
        let mut path = vec![Frame::default()];
        if let Err(halt) = self.world.start(&mut path[0].state) {
            return self.halted(halt, &path, 0, true);
        }
        // The hashes of the states on the path.
        let mut hashes = vec![path[0].state.hash()];
        visited.insert(hashes[0]);
        self.progress.states = 1;
        if let Err(halt) = self.enter(&mut path[0]) {
            return self.halted(halt, &path, 0, true);
        }
        let mut depth = 0;
        loop {
            if path[depth].next == path[depth].moves.len() {
                if depth == 0 {
                    return Ok(End::All);
                }
                depth -= 1;
                continue;
            }
            if path.len() == depth + 1 {
                path.push(Frame::default());
            }
            let (above, below) = path.split_at_mut(depth + 1);
            let (here, next) = (&mut above[depth], &mut below[0]);
            let which = here.moves[here.next];
            here.next += 1;
            next.state.clone_from(&here.state);
            self.progress.transitions += 1;
            self.progress.parted += u64::from(matches!(which, Move::Begin(..)));
            if self.progress.transitions.is_multiple_of(LOOK) {
                self.progress.depth = depth;
                if (self.watch)(&self.progress).is_break() {
                    return Ok(End::Asked);
                }
            }
            match self.world.act(&mut next.state, which) {
                Ok(()) => {}
                Err(halt) => match self.halted(halt, &path, depth, false) {
                    Ok(End::All) => continue,
                    end => return end,
                },
            }
            let hash = next.state.hash();
            hashes.truncate(depth + 1);
            if !visited.insert(hash) {
                self.progress.circles += u64::from(hashes.contains(&hash));
                continue;
            }
            hashes.push(hash);
            self.progress.states += 1;
            if self.progress.states > self.limit {
                return Ok(End::Limit);
            }
            let entered = self.enter(next);
            depth += 1;
            self.progress.longest = self.progress.longest.max(depth);
            if let Err(halt) = entered {
                match self.halted(halt, &path, depth, true) {
                    Ok(End::All) => {}
                    end => return end,
                }
            }
        }
    }

    /// Enters a state that was not known before: checks it, and collects its possible moves.
    fn enter(&mut self, frame: &mut Frame) -> Result<(), Halt> {
        frame.next = 0;
        self.progress.ends += u64::from(visit(self.world, self.checks, &frame.state, &mut frame.moves)?);
        Ok(())
    }

    /// Handles a halt. Returns `End::All` to continue elsewhere.
    fn halted(&mut self, halt: Halt, path: &[Frame], depth: usize, inside: bool) -> Result<End, Halt> {
        match halt {
            Halt::Again => Err(Halt::Again),
            Halt::Endless(rank, local) => {
                self.progress.cut += 1;
                let automaton = &self.world.automaton;
                self.endless.entry(rank).or_insert_with(|| automaton.again_and_again(local));
                Ok(End::All)
            }
            Halt::Failure(what) => {
                let upto = if inside { depth } else { depth + 1 };
                let moves = path[..upto].iter().map(|frame| frame.moves[frame.next - 1]);
                Ok(End::Wrong(what, moves.collect()))
            }
        }
    }
}

/// Checks `state` and finds its moves. Returns true if it is an end.
fn visit(world: &mut World<'_>, checks: &Checks<'_>, state: &State, moves: &mut Vec<Move>) -> Result<bool, Halt> {
    moves.clear();
    checks.always(state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
    world.moves(state, moves)?;
    // A death may happen, but need not.
    if moves.iter().any(|which| !matches!(which, Move::Die(_))) {
        return Ok(false);
    }
    let ranks = 0..state.ranks.len() as u32;
    let waiting = ranks.filter_map(|rank| world.waits_for(state, Rank::new(rank)).transpose());
    let waiting = waiting.collect::<Result<Vec<_>, _>>()?;
    if !waiting.is_empty() {
        return Err(Halt::Failure(format!("deadlock: nothing is on its way, and {}", waiting.join("; "))));
    }
    checks.at_end(state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
    Ok(true)
}

/// Returns the shortest path to a violation, unless more than `limit` states are nearer.
/// [`Halt::Again`] is for the caller to handle.
pub(crate) fn breadth_first(
    world: &mut World<'_>,
    checks: &Checks<'_>,
    limit: usize,
) -> Result<Option<Vec<Move>>, Halt> {
    let mut from: Vec<(u32, Move)> = vec![(0, Move::Go(0))];
    let way = |from: &[(u32, Move)], mut at: u32| {
        let mut moves = Vec::new();
        while at != 0 {
            let (before, which) = from[at as usize];
            moves.push(which);
            at = before;
        }
        moves.reverse();
        moves
    };
    let mut known = MixMap::default();
    let mut moves = Vec::new();
    let mut first = State::default();
    match world.start(&mut first) {
        Ok(()) => {}
        Err(Halt::Again) => return Err(Halt::Again),
        Err(_) => return Ok(Some(Vec::new())),
    }
    known.insert(first.hash(), ());
    let mut queue = VecDeque::from([(first, 0)]);
    while let Some((state, number)) = queue.pop_front() {
        match visit(world, checks, &state, &mut moves) {
            Ok(_) => {}
            Err(Halt::Failure(_)) => return Ok(Some(way(&from, number))),
            Err(Halt::Endless(..)) => continue,
            Err(Halt::Again) => return Err(Halt::Again),
        }
        for which in moves.drain(..) {
            let mut next = state.clone();
            match world.act(&mut next, which) {
                Ok(()) => {}
                Err(Halt::Failure(_)) => {
                    let mut moves = way(&from, number);
                    moves.push(which);
                    return Ok(Some(moves));
                }
                Err(Halt::Endless(..)) => continue,
                Err(Halt::Again) => return Err(Halt::Again),
            }
            if known.insert(next.hash(), ()).is_none() {
                if from.len() > limit {
                    return Ok(None);
                }
                from.push((number, which));
                queue.push_back((next, from.len() as u32 - 1));
            }
        }
    }
    Ok(None)
}

/// Follows exactly these moves. Returns the violation, if there is one, and the timeline.
pub(crate) fn follow(world: &mut World<'_>, checks: &Checks<'_>, moves: &[Move]) -> (Option<String>, Vec<String>) {
    world.timeline = Some(Timeline::default());
    let mut state = State::default();
    let wrong = (|| {
        world.start(&mut state)?;
        for which in moves {
            world.act(&mut state, *which)?;
            checks.always(&state, &world.automaton.job.cells.borrow()).map_err(Halt::Failure)?;
        }
        visit(world, checks, &state, &mut Vec::new()).map(drop)
    })();
    let mut timeline = world.timeline.take().unwrap_or_default();
    timeline.ends(&world.automaton.job.cells.borrow(), &state);
    let lines = timeline.into_lines();
    match wrong {
        Err(Halt::Failure(what)) => (Some(what), lines),
        Err(Halt::Again) => {
            (Some("the schedule is of another program: it does not know all memory that is shared".into()), lines)
        }
        Ok(()) | Err(Halt::Endless(..)) => (None, lines),
    }
}
