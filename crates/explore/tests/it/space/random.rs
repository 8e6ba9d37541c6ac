//! Random graphs, searched and compared with plain closures over their edges.

use super::{Graph, Keyed, To, fingerprint};
use explore::space::{End, Key, Search, Whole, shortest};
use fastrand::Rng;
use std::collections::BTreeSet;

const GRAPHS: u64 = 2_000;

/// Returns a graph of up to 12 states; a few of its edges and states are wrong or pruned.
fn graph(seed: u64) -> Graph {
    let mut random = Rng::with_seed(seed);
    let states = 2 + random.u64(..11);
    let edge = |random: &mut Rng| {
        let to = match random.u64(..40) {
            0 => To::Wrong("move"),
            1 => To::Pruned,
            _ => To::State(random.u64(..states) as u8),
        };
        (random.u64(..states) as u8, to)
    };
    let edges: Vec<_> = (0..states + random.u64(..2 * states)).map(|_| edge(&mut random)).collect();
    let mut graph = Graph::of(&edges);
    for state in 0..states as u8 {
        match random.u64(..20) {
            0 => graph.halts.push((state, To::Wrong("state"))),
            1 => graph.halts.push((state, To::Pruned)),
            _ => {}
        }
    }
    graph
}

/// The states of a graph that are reached, level by level, up to the first violation: their
/// number, the number of edges from them, and the moves to a nearest violation.
struct Reached {
    states: usize,
    transitions: usize,
    nearest: Option<usize>,
}

fn reached(graph: &Graph) -> Reached {
    let halts = |state: u8| graph.halts.iter().find(|(at, _)| *at == state).map(|(_, to)| *to);
    let (mut known, mut level) = (BTreeSet::from([graph.first]), BTreeSet::from([graph.first]));
    let (mut transitions, mut moves, mut nearest) = (0, 0, None);
    while !level.is_empty() {
        if level.iter().any(|state| matches!(halts(*state), Some(To::Wrong(_)))) {
            nearest = nearest.or(Some(moves));
        }
        moves += 1;
        let left = |state: &u8| level.contains(state) && halts(*state).is_none();
        let edges: Vec<_> = graph.edges.iter().filter(|(from, _)| left(from)).map(|(_, to)| *to).collect();
        transitions += edges.len();
        if edges.iter().any(|to| matches!(to, To::Wrong(_))) {
            nearest = nearest.or(Some(moves));
        }
        let next = edges.iter().filter_map(|to| if let To::State(state) = to { Some(*state) } else { None });
        level = next.filter(|state| !known.contains(state)).collect();
        known.extend(&level);
    }
    Reached { states: known.len(), transitions, nearest }
}

/// Compares both searches of a graph with its closure. Returns a description of a difference.
fn compare<K: Key>(graph: &mut Graph, key: impl Fn(&u8) -> K + Copy) -> Result<(), String> {
    let Reached { states, transitions, nearest } = reached(graph);
    let found = Search::new().run(&mut Keyed(graph, key)).expect("no edge aborts");
    let (end, progress) = (found.end, found.progress);
    let near = shortest(&mut Keyed(graph, key), 100).expect("no edge aborts");
    if let Some(moves) = nearest {
        let End::Violated(wrong, path) = end else { return Err(format!("{end:?}, not a violation")) };
        for (wrong, path) in [(wrong, path), near.clone().ok_or("no shortest path")?] {
            let shows = match graph.follow(&path) {
                To::State(state) => graph.halts.contains(&(state, To::Wrong(wrong))),
                to => to == To::Wrong(wrong),
            };
            if !shows {
                return Err(format!("{path:?} does not lead to {wrong}"));
            }
        }
        let found = near.map(|(_, path)| path.len());
        return if found == Some(moves) { Ok(()) } else { Err(format!("{found:?} moves, not {moves}")) };
    }
    let counted = (progress.states as usize, progress.transitions as usize);
    if end != End::Exhausted || near.is_some() || counted != (states, transitions) {
        return Err(format!("{end:?}, {near:?}, {counted:?} instead of {:?}", (states, transitions)));
    }
    Ok(())
}

#[test]
fn searches_agree_with_closures() {
    let mut broken = 0;
    for seed in 0..GRAPHS {
        let mut graph = graph(seed);
        compare(&mut graph, fingerprint).unwrap_or_else(|what| panic!("graph {seed}: {what}"));
        compare(&mut graph, Whole::of).unwrap_or_else(|what| panic!("graph {seed}, whole: {what}"));
        broken += u64::from(reached(&graph).nearest.is_some());
    }
    assert!((GRAPHS / 5..GRAPHS * 4 / 5).contains(&broken), "{broken} graphs with a violation");
}

/// The comparison notices a key that merges two states, where a graph reaches both.
#[test]
fn a_wrong_key_does_not_agree() {
    let merging = |state: &u8| fingerprint(&(state & !1));
    let noticed = (0..GRAPHS).filter(|seed| compare(&mut graph(*seed), merging).is_err()).count();
    assert!(noticed as u64 > GRAPHS / 4, "{noticed} graphs");
}
