//! The differences between the code and its table of steps when operations complete as they are
//! posted.
//!
//! A [`Replay`](crate::Replay) of such code tracks the set of all states in which the model may be.
//! From each of them, an access is followed as usual, and the following deviations are also
//! permitted:
//! * *Additional loads.* Before it continues, a fast path checks whether its node has a successor,
//!   and a rank that returns its node checks whether the node can be renewed. So a load at a point
//!   where the model loads, or waits for another value, may or may not be the model's step. It must
//!   find the value in the model's memory.
//! * *Renewal.* A retired node is made ready when it is returned: its next word is cleared, and its
//!   wake word is stored again with the value that it already has. The model does so when it takes
//!   the node again, if the node's next word is not 0; if it is 0, the model takes the node without
//!   an access of the code. (A writer that was woken and leaves as the last clears its next word,
//!   which is already 0, before it retires its node.)
//! * **One load fewer.* If writers hand over, a writer loads its next word before X2. If X2 then
//!   finds no readers to sweep for, its fast path continues to X4 without a second load. If a
//!   successor has linked itself in the meantime, X4 fails, and X4's mark finds it.
//! * *The same turn.* A writer that was not woken and leaves as the last returns its node
//!   unchanged, without X4's store: no other rank knows the node.
//!
//! Atomics, gets, puts and all other stores match those of the model one to one and in order.

use crate::{
    model::Model,
    op::{Move, Op},
    replay::{Access, Refused, Seen},
    state::{Pc, Slot, State, Taking},
    walk::{Tables, Walk},
    words::{PASSED, Word},
};
use rma_lock::steps::{CountedAt as At, HandOver};

/// Adds to `after` the states in which the model may be after it has followed `seen` from `state`.
///
/// # Errors
/// The reason why the model cannot follow the access exactly.
pub(crate) fn follow(model: &Model, state: &State, seen: Seen, after: &mut Vec<State>) -> Result<(), Refused> {
    let mut add = |state| {
        if !after.contains(&state) {
            after.push(state);
        }
    };
    let mut exactly = Ok(());
    for before in [Some(*state), ready_node(model, state, seen.rank)].into_iter().flatten() {
        let mut next = before;
        match seen.follow(model, &mut next) {
            Ok(()) => {
                shortened(model, &before, &next, seen.rank).map(&mut add);
                add(next);
            }
            Err(refused) => exactly = Err(refused),
        }
        match seen.access {
            Access::Load if before.read(seen.word) == seen.bits => {
                add(before);
                let mut woken = before;
                if (Seen { access: Access::Watch, ..seen }).follow(model, &mut woken).is_ok() {
                    add(woken);
                }
            }
            Access::Store if renews(model, &before, seen) => {
                let mut renewed = before;
                renewed.write(seen.word, seen.bits);
                add(renewed);
            }
            _ => {}
        }
    }
    exactly
}

/// Takes a node that is ready without further steps, if `me` is about to take one.
fn ready_node(model: &Model, state: &State, me: usize) -> Option<State> {
    let rank = &state.ranks[me];
    if rank.pc != Pc::Take(Taking::Load) || state.read(rank.next_word(me)) != 0 {
        return None;
    }
    let mut taken = *state;
    model.take(&mut taken, Move::Step(me)).1.ok().map(|()| taken)
}

/// Returns whether a store only renews a node of its own rank that is in no queue.
fn renews(model: &Model, state: &State, seen: Seen) -> bool {
    let rank = &state.ranks[seen.rank];
    let held = state.read(seen.word);
    let own = |owner: u8, cell: u8| (owner as usize == seen.rank).then_some(cell);
    match seen.word {
        Word::Next(owner, cell) if seen.bits == 0 && own(owner, cell).is_some() => match rank.slots[cell as usize] {
            Slot::Dirty => held != PASSED,
            _ => held == 0 && retires_as_last(model, state, seen.rank) == Some(Word::Wake(owner, cell)),
        },
        Word::Wake(owner, cell) if own(owner, cell).is_some() => {
            rank.slots[cell as usize] == Slot::Dirty && held == seen.bits
        }
        _ => false,
    }
}

/// Returns the wake word of the node that `me` is about to retire, if `me` left the queue as its
/// last rank.
fn retires_as_last(model: &Model, state: &State, me: usize) -> Option<Word> {
    let Walk::Counted(steps) = &state.ranks[me].walk else { return None };
    match model.pending(state, me)?.op {
        Op::Store(wake, _) if steps.at == At::X4Retire && steps.next.is_none() => Some(wake),
        _ => None,
    }
}

/// Continues from `state`, the result of a step of `me`, past the next step if a fast path omits
/// it.
fn shortened(model: &Model, before: &State, state: &State, me: usize) -> Option<State> {
    let (Walk::Counted(from), Tables::Counted(table)) = (&before.ranks[me].walk, &model.tables) else { return None };
    let mut shorter = *state;
    let Walk::Counted(steps) = &mut shorter.ranks[me].walk else { return None };
    match (from.at, steps.at) {
        _ if table.rules.barges => return None,
        (At::X2, At::X4Load) if table.rules.hand_over != HandOver::Never => {}
        (At::X4, At::X4Retire) if !steps.woken && steps.next.is_none() => steps.clean = true,
        _ => return None,
    }
    model.turn(&mut shorter, me).walked(0).ok().map(|()| shorter)
}
