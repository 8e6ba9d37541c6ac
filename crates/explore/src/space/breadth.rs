//! The search for a shortest counterexample.

use super::{Halt, Key, System};
use std::collections::{HashSet, VecDeque};

/// The usual bound of [`shortest`], which keeps a whole level of states in memory.
pub const NEAR: usize = 300_000;

/// A violation and the moves that lead to it, if there is one.
type Found<S> = Option<(<S as System>::Violation, Vec<<S as System>::Move>)>;

/// Returns the violation that the fewest moves lead to, with these moves. Returns `None` if there
/// is none, or if more than `bound` states are as near as it.
pub fn shortest<S: System>(system: &mut S, bound: usize) -> Result<Found<S>, S::Abort> {
    // For each state but the first, numbered from 1: the number of its predecessor, and the move.
    let mut from: Vec<(u32, S::Move)> = Vec::new();
    let mut known: HashSet<S::Key, <S::Key as Key>::Build> = HashSet::default();
    let mut moves = Vec::new();
    let first = match system.first() {
        Ok(first) => first,
        Err(Halt::Violation(wrong)) => return Ok(Some((wrong, Vec::new()))),
        Err(Halt::Pruned) => return Ok(None),
        Err(Halt::Abort(why)) => return Err(why),
    };
    known.insert(system.key(&first));
    let mut queue = VecDeque::from([(first, 0)]);
    // The last state that is as near as the current one.
    let mut level = 0;
    let mut found = None;
    while let Some((state, number)) = queue.pop_front() {
        if number > level {
            if found.is_some() {
                break;
            }
            level = from.len() as u32;
        }
        moves.clear();
        match system.visit(&state, &mut moves) {
            Ok(_) => {}
            Err(Halt::Violation(wrong)) => return Ok(Some((wrong, way(&from, number, None)))),
            Err(Halt::Pruned) => continue,
            Err(Halt::Abort(why)) => return Err(why),
        }
        // A violation of a move is one move further away than those of the remaining states of the
        // level, which are visited first.
        if found.is_some() {
            continue;
        }
        for which in moves.drain(..) {
            let mut next = state.clone();
            match system.apply(&mut next, which) {
                Ok(()) => {}
                Err(Halt::Violation(wrong)) => {
                    found = Some((wrong, way(&from, number, Some(which))));
                    break;
                }
                Err(Halt::Pruned) => continue,
                Err(Halt::Abort(why)) => return Err(why),
            }
            if known.insert(system.key(&next)) {
                if known.len() > bound {
                    return Ok(None);
                }
                from.push((number, which));
                queue.push_back((next, from.len() as u32));
            }
        }
    }
    Ok(found)
}

/// Returns the moves to the state with this number, and `last`.
fn way<M: Copy>(from: &[(u32, M)], mut number: u32, last: Option<M>) -> Vec<M> {
    let mut moves = Vec::from_iter(last);
    while let Some(before) = number.checked_sub(1) {
        let (earlier, which) = from[before as usize];
        moves.push(which);
        number = earlier;
    }
    moves.reverse();
    moves
}
