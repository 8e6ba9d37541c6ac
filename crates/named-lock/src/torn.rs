//! Which process tore what a lock protects, across the generations of the lock.
//!
//! The lock's own protocol says who tore the data by a *rank* of one generation. Beside it, each
//! process says in its slot whether it may be writing; a word in the header names a process that is
//! in no slot any more. Together they tell the next generation what to begin with.

use crate::{
    layout,
    mapping::Mapping,
    slots::{self, State},
};
use core::sync::atomic::Ordering::SeqCst;
use rdma_fabric::Rank;

/// Returns the process that `by`, of the lock's protocol, is or was.
pub(crate) fn process_of(map: &Mapping, by: Rank) -> u32 {
    match map.word(layout::TORN_BY).load(SeqCst) {
        0 if slots::MEMBERS.contains(&by.index()) => match State::of(map, by.index()).0 {
            State::Taken { number } | State::Dead { number } => number,
            State::Free { .. } => 0,
        },
        number => number as u32,
    }
}

/// Records that a process that lives has left the data half-written.
pub(crate) fn say(map: &Mapping, number: u32) {
    map.word(layout::TORN_BY).store(number.into(), SeqCst);
}

/// Records that the data are whole. The caller is inside, exclusively.
pub(crate) fn clear(map: &Mapping) {
    map.word(layout::TORN_BY).store(0, SeqCst);
    for rank in slots::MEMBERS.filter(|&rank| slots::is_dead(map, rank)) {
        map.slot_word(rank, layout::WRITES).store(0, SeqCst);
    }
}

/// Returns the process that left the data half-written, in a generation in which nobody holds the
/// lock. `all_ended` says that no process in the slots lives, whatever its number means now.
pub(crate) fn left_by(map: &Mapping, all_ended: bool) -> Option<u32> {
    let named = map.word(layout::TORN_BY).load(SeqCst) as u32;
    if named != 0 {
        return Some(named);
    }
    let writes = |rank: &usize| map.slot_word(*rank, layout::WRITES).load(SeqCst) != 0;
    slots::MEMBERS.filter(writes).find_map(|rank| match (State::of(map, rank).0, slots::process(map, rank)) {
        (State::Dead { number }, _) => Some(number),
        (_, Some((process, _))) if all_ended || process.has_ended() => Some(process.number),
        _ => None,
    })
}
