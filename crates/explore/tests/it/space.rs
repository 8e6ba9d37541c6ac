//! The search of states, on small graphs whose figures are known.

mod random;

use explore::space::{End, Halt, HaltOf, Key, OutcomeOf, Progress, Search, System, Whole, shortest};
use std::{cell::RefCell, ops::ControlFlow};

/// Where an edge leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    State(u8),
    Wrong(&'static str),
    Pruned,
    Abort,
}

/// A graph of numbered states, and what a visit of a state finds.
#[derive(Default)]
struct Graph {
    edges: Vec<(u8, To)>,
    /// States that a visit does not leave.
    halts: Vec<(u8, To)>,
    first: u8,
    /// The states that were visited, in order.
    visited: Vec<u8>,
}

/// A graph whose states are identified by keys that this function makes.
struct Keyed<'g, F>(&'g mut Graph, F);

fn fingerprint(state: &u8) -> u128 {
    u128::from(*state) << 64 | u128::from(*state)
}

/// A graph whose states are identified by their fingerprints.
type ByFingerprint<'a> = Keyed<'a, fn(&u8) -> u128>;

impl Graph {
    fn of(edges: &[(u8, To)]) -> Self {
        Graph { edges: edges.to_vec(), ..Graph::default() }
    }

    fn plain(edges: &[(u8, u8)]) -> Self {
        Graph { edges: edges.iter().map(|(from, to)| (*from, To::State(*to))).collect(), ..Graph::default() }
    }

    fn halting(self, halts: &[(u8, To)]) -> Self {
        Graph { halts: halts.to_vec(), ..self }
    }

    fn search(&mut self, search: Search<'_>) -> Result<OutcomeOf<ByFingerprint<'_>>, &'static str> {
        self.visited.clear();
        search.run(&mut Keyed(self, fingerprint))
    }

    fn all(&mut self) -> (Progress, End<&'static str, usize>) {
        let found = self.search(Search::new()).expect("no edge aborts");
        (found.progress, found.end)
    }

    fn shortest(&mut self, bound: usize) -> Option<(&'static str, Vec<usize>)> {
        shortest(&mut Keyed(self, fingerprint), bound).expect("no edge aborts")
    }

    /// Follows edges by their numbers, and returns where the last one leads.
    fn follow(&self, moves: &[usize]) -> To {
        let mut at = To::State(self.first);
        for number in moves {
            let (from, to) = self.edges[*number];
            assert_eq!(at, To::State(from), "edge {number} of {moves:?}");
            at = to;
        }
        at
    }
}

fn halt(to: To) -> Result<u8, Halt<&'static str, &'static str>> {
    match to {
        To::State(state) => Ok(state),
        To::Wrong(what) => Err(Halt::Violation(what)),
        To::Pruned => Err(Halt::Pruned),
        To::Abort => Err(Halt::Abort("abandoned")),
    }
}

impl<K: Key, F: Fn(&u8) -> K> System for Keyed<'_, F> {
    type State = u8;
    type Move = usize;
    type Violation = &'static str;
    type Abort = &'static str;
    type Key = K;

    fn first(&mut self) -> Result<u8, HaltOf<Self>> {
        Ok(self.0.first)
    }

    fn apply(&mut self, state: &mut u8, which: usize) -> Result<(), HaltOf<Self>> {
        let (from, to) = self.0.edges[which];
        assert_eq!(from, *state, "edge {which} starts elsewhere");
        // A move that fails may leave anything behind.
        *state = 255;
        *state = halt(to)?;
        Ok(())
    }

    fn visit(&mut self, state: &u8, moves: &mut Vec<usize>) -> Result<bool, HaltOf<Self>> {
        assert!(moves.is_empty());
        self.0.visited.push(*state);
        moves.extend((0..self.0.edges.len()).filter(|edge| self.0.edges[*edge].0 == *state));
        let halts = self.0.halts.iter().find(|(at, _)| at == state);
        halts.map_or(Ok(0), |(_, to)| halt(*to))?;
        Ok(moves.is_empty())
    }

    fn key(&self, state: &u8) -> K {
        (self.1)(state)
    }
}

/// Two ways to 3, a circle of three states, one of one state, and an end.
#[test]
fn states_transitions_ends_and_circles_are_counted() {
    let mut graph = Graph::plain(&[(0, 1), (0, 3), (1, 2), (2, 0), (2, 2), (2, 3), (1, 3), (3, 4)]);
    let (found, end) = graph.all();
    assert_eq!(end, End::Exhausted);
    assert_eq!((found.states, found.transitions, found.longest, found.ends), (5, 8, 4, 1));
    assert_eq!((found.circles, found.pruned), (2, 0));
    // The moves of each state in their order.
    assert_eq!(graph.visited, [0, 1, 2, 3, 4]);
}

/// A state that was left is no longer on the path: to meet it again is no circle.
#[test]
fn a_state_beside_the_path_is_no_circle() {
    let (found, _) = Graph::plain(&[(0, 1), (0, 2), (1, 3), (2, 3), (2, 1), (3, 4)]).all();
    assert_eq!((found.states, found.transitions, found.longest, found.circles), (5, 6, 3, 0));
}

#[test]
fn pruned_branches_are_counted_and_others_followed() {
    let edges = [(0, To::Pruned), (0, To::State(1)), (1, To::State(3)), (0, To::State(2)), (2, To::Pruned)];
    // A visit that prunes leaves the state by none of its moves.
    let mut graph = Graph::of(&edges).halting(&[(1, To::Pruned)]);
    let (found, end) = graph.all();
    assert_eq!(end, End::Exhausted);
    assert_eq!((found.states, found.transitions, found.pruned, found.ends), (3, 4, 3, 0));
    assert_eq!(graph.visited, [0, 1, 2]);
    assert_eq!(graph.shortest(100), None);
    assert_eq!(Graph::of(&edges).halting(&[(0, To::Pruned)]).all().0.pruned, 1);
}

#[test]
fn an_abort_ends_both_searches() {
    let moving = Graph::of(&[(0, To::State(1)), (1, To::Abort), (0, To::Wrong("never met"))]);
    let visiting = Graph::plain(&[(0, 1), (1, 2)]).halting(&[(1, To::Abort)]);
    let at_first = Graph::plain(&[(0, 1)]).halting(&[(0, To::Abort)]);
    for mut graph in [moving, visiting, at_first] {
        assert_eq!(graph.search(Search::new()), Err("abandoned"));
        // Nearer than the abort of the first graph is its violation.
        let found = shortest(&mut Keyed(&mut graph, fingerprint), 100);
        let nearer = graph.edges.iter().any(|(_, to)| matches!(to, To::Wrong(_)));
        assert_eq!(found, if nearer { Ok(Some(("never met", vec![2]))) } else { Err("abandoned") });
    }
}

#[test]
fn a_limit_stops_at_the_first_state_beyond_it() {
    let mut graph = Graph::plain(&[(0, 1), (1, 2), (2, 0), (2, 3)]);
    let found = graph.search(Search::new().limit(4)).unwrap();
    assert_eq!((found.end, found.progress.states), (End::Exhausted, 4));
    let found = graph.search(Search::new().limit(3)).unwrap();
    assert_eq!((found.end, found.progress.states, found.progress.longest), (End::Limit, 4, 2));
    assert_eq!(graph.visited, [0, 1, 2]);
}

/// The first state's violation is found without a move, also where nothing may be visited.
#[test]
fn the_first_state_may_be_wrong() {
    let mut graph = Graph::plain(&[(0, 1)]).halting(&[(0, To::Wrong("at once"))]);
    assert_eq!(graph.search(Search::new().limit(0)).unwrap().end, End::Violated("at once", vec![]));
    assert_eq!(graph.shortest(0), Some(("at once", vec![])));
}

#[test]
fn a_shorter_path_is_found() {
    // The first path is 0-1-2-3-4, the shortest 0-2-4.
    let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (0, 2), (4, 5)];
    let mut graph = Graph::plain(&edges).halting(&[(4, To::Wrong("four"))]);
    let (found, end) = graph.all();
    assert_eq!(end, End::Violated("four", vec![0, 1, 2, 3]));
    assert_eq!((found.states, found.longest), (5, 4));
    assert_eq!(graph.shortest(100), Some(("four", vec![5, 4])));
    // All states but the last are as near as it.
    assert_eq!(graph.shortest(5), Some(("four", vec![5, 4])));
    assert_eq!(graph.shortest(3), None);
}

/// A violation of a move leads one move further than its state; a state of the same distance that
/// is wrong itself is nearer.
#[test]
fn a_wrong_state_is_nearer_than_a_wrong_move_beside_it() {
    let edges = [(0, To::State(1)), (0, To::State(2)), (1, To::Wrong("move"))];
    let mut graph = Graph::of(&edges).halting(&[(2, To::Wrong("state"))]);
    assert_eq!(graph.all().1, End::Violated("move", vec![0, 2]));
    assert_eq!(graph.shortest(100), Some(("state", vec![1])));
    assert_eq!(Graph::of(&edges).shortest(100), Some(("move", vec![0, 2])));
}

/// Two counters, each from 0 to 299, that only grow.
struct Counters;

impl System for Counters {
    type State = [u16; 2];
    type Move = usize;
    type Violation = ();
    type Abort = ();
    type Key = Whole<[u16; 2]>;

    fn first(&mut self) -> Result<[u16; 2], HaltOf<Self>> {
        Ok([0, 0])
    }
    fn apply(&mut self, state: &mut [u16; 2], which: usize) -> Result<(), HaltOf<Self>> {
        state[which] += 1;
        Ok(())
    }
    fn visit(&mut self, state: &[u16; 2], moves: &mut Vec<usize>) -> Result<bool, HaltOf<Self>> {
        moves.extend((0..2).filter(|which| state[*which] < 299));
        Ok(moves.is_empty())
    }
    fn key(&self, state: &[u16; 2]) -> Whole<[u16; 2]> {
        Whole::of(state)
    }
}

#[test]
fn progress_is_reported_and_can_stop_the_search() {
    let (reports, mut last) = (RefCell::new(Vec::new()), |now: &Progress| {
        assert!(now.depth <= now.longest && now.states <= now.transitions, "{now:?}");
        ControlFlow::Break(())
    });
    let mut watch = |now: &Progress| {
        reports.borrow_mut().push(now.transitions);
        ControlFlow::Continue(())
    };
    let found = Search::new().watch(&mut watch).run(&mut Counters).unwrap();
    assert_eq!((found.end, found.progress.states, found.progress.transitions), (End::Exhausted, 90_000, 2 * 299 * 300));
    assert_eq!((found.progress.longest, found.progress.ends), (598, 1));
    assert_eq!(*reports.borrow(), [65_536, 131_072]);
    let found = Search::new().watch(&mut last).run(&mut Counters).unwrap();
    assert_eq!((found.end, found.progress.transitions), (End::Asked, 65_536));
}

/// A key that merges different states makes the search skip what lies behind one of them.
#[test]
fn a_key_that_merges_states_is_noticed() {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 4), (4, 5)];
    let mut graph = Graph::plain(&edges).halting(&[(5, To::Wrong("behind 2"))]);
    let whole = Search::new().run(&mut Keyed(&mut graph, Whole::of)).unwrap();
    assert_eq!((whole.end, whole.progress.states), (End::Violated("behind 2", vec![1, 3, 4]), 6));
    // 1 and 2 look the same.
    let merging = |state: &u8| u128::from(state.div_ceil(2));
    graph.visited.clear();
    let merged = Search::new().run(&mut Keyed(&mut graph, merging)).unwrap();
    assert_eq!((merged.end, merged.progress.states), (End::Exhausted, 3));
    assert_eq!(graph.visited, [0, 1, 3]);
    assert_eq!(shortest(&mut Keyed(&mut graph, merging), 100), Ok(None));
}
