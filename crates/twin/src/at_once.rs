//! What code does otherwise than its table of steps where operations are over when they are posted.
//!
//! A [`Replay`](crate::Replay) of such code keeps all states in which the model may be. An access
//! is followed from each of them as it always is, and besides:
//! * *More looks.* Before it goes on, a short path looks whether somebody is behind its node, and a
//!   rank that gives its node back whether it can be renewed. So a load where the model loads, or
//!   waits for another value, may or may not be the model's step. It must find what the model's
//!   memory holds.
//! * *Renewing.* A node that was retired is made ready when it is given back: no next, and once
//!   more the wake word that it has. The model does so when it takes the node again, if its next
//!   word is not 0; if it is, the model takes the node without an access of the code. (A writer
//!   that was woken and leaves as the last clears its next word, which is 0, before it retires its
//!   node.)
//! * *One look less.* Where writers hand over, one looks at its next word before X2. If X2 then
//!   finds nobody to sweep for, its short path goes on to X4 without looking again. If somebody has
//!   linked itself meanwhile, X4 fails, and X4's mark finds it.
//! * *The same turn.* A writer that nobody woke, and that leaves as the last, gives its node back
//!   as it was, without X4's store: nobody else knows the node.
//!
//! Atomics, gets, puts and all other stores are those of the model, one to one and in order.

use crate::{
    model::Model,
    op::{Move, Op},
    replay::{Access, Refused, Seen},
    state::{Pc, Slot, State, Taking},
    walk::{Tables, Walk},
    words::{PASSED, Word},
};
use rma_lock::steps::{CountedAt as At, HandOver};

/// Adds to `after` the states in which the model may be once it has followed `seen` from `state`.
///
/// # Errors
/// Why it can't be followed exactly.
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

/// Takes a node that is ready as it is, if `me` is about to take one.
fn ready_node(model: &Model, state: &State, me: usize) -> Option<State> {
    let rank = &state.ranks[me];
    if rank.pc != Pc::Take(Taking::Load) || state.read(rank.next_word(me)) != 0 {
        return None;
    }
    let mut taken = *state;
    model.take(&mut taken, Move::Step(me)).1.ok().map(|()| taken)
}

/// Returns whether a store only makes ready a node of its rank that is in no queue.
fn renews(model: &Model, state: &State, seen: Seen) -> bool {
    let rank = &state.ranks[seen.rank];
    let held = state.read(seen.word);
    let own = |owner: u8, cell: u8| (owner as usize == seen.rank).then_some(cell);
    match seen.word {
        Word::Next(owner, cell) if seen.bits == 0 && own(owner, cell).is_some() => match rank.slots[cell as usize] {
            Slot::Worn => held != PASSED,
            _ => held == 0 && retires_as_last(model, state, seen.rank) == Some(Word::Wake(owner, cell)),
        },
        Word::Wake(owner, cell) if own(owner, cell).is_some() => {
            rank.slots[cell as usize] == Slot::Worn && held == seen.bits
        }
        _ => false,
    }
}

/// Returns the wake word of the node that `me` is about to retire, if it has left its queue as the
/// last.
fn retires_as_last(model: &Model, state: &State, me: usize) -> Option<Word> {
    let Walk::Counted(steps) = &state.ranks[me].walk else { return None };
    match model.pending(state, me)?.op {
        Op::Store(wake, _) if steps.at == At::X4Retire && steps.next.is_none() => Some(wake),
        _ => None,
    }
}

/// Goes on from `state`, to which a step of `me` has led, past a step that a short path leaves out,
/// if one comes next.
fn shortened(model: &Model, before: &State, state: &State, me: usize) -> Option<State> {
    let (Walk::Counted(from), Tables::Counted(table)) = (&before.ranks[me].walk, &model.tables) else { return None };
    let mut shorter = *state;
    let Walk::Counted(steps) = &mut shorter.ranks[me].walk else { return None };
    match (from.at, steps.at) {
        _ if table.rules.barges => return None,
        (At::X2, At::X4Load) if table.rules.hand_over != HandOver::Never => {}
        (At::X4, At::X4Retire) if !steps.woken && steps.next.is_none() => steps.fresh = true,
        _ => return None,
    }
    model.turn(&mut shorter, me).walked(0).ok().map(|()| shorter)
}
