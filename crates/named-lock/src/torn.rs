//! Tracks the process that tore the protected data across the generations of the lock.
//!
//! The lock's own protocol identifies that process by its *rank* in one generation. In addition,
//! each process records in its slot whether it may be writing; a word in the header identifies a
//! process that is no longer in a slot. From these, the initial state of the next generation is
//! derived.

use crate::{
    layout,
    mapping::Mapping,
    process::Unknown,
    slots::{self, State},
};
use core::sync::atomic::Ordering::SeqCst;
use rdma_fabric::Rank;

/// Returns the process that has or had the rank `by` of the lock's protocol.
pub(crate) fn process_of(map: &Mapping, by: Rank) -> u32 {
    match map.word(layout::TORN_BY).load(SeqCst) {
        0 if slots::MEMBERS.contains(&by.index()) => match State::of(map, by.index()).0 {
            State::Taken { number } | State::Dead { number } => number,
            State::Free { .. } => 0,
        },
        number => number as u32,
    }
}

/// Records that a live process has left the data half-written.
pub(crate) fn publish(map: &Mapping, number: u32) {
    map.word(layout::TORN_BY).store(number.into(), SeqCst);
}

/// Records that the data is consistent. The caller holds the lock exclusively.
pub(crate) fn clear(map: &Mapping) {
    map.word(layout::TORN_BY).store(0, SeqCst);
    for rank in slots::MEMBERS.filter(|&rank| slots::is_dead(map, rank)) {
        map.slot_word(rank, layout::WRITES).store(0, SeqCst);
    }
}

/// Returns the process that left the data half-written, in a generation in which no process holds
/// the lock. `all_ended` means that none of the processes in the slots is alive, even if a live
/// process now has the same ID.
pub(crate) fn left_by(map: &Mapping, all_ended: bool) -> Result<Option<u32>, Unknown> {
    let named = map.word(layout::TORN_BY).load(SeqCst) as u32;
    if named != 0 {
        return Ok(Some(named));
    }
    let writes = |rank: &usize| map.slot_word(*rank, layout::WRITES).load(SeqCst) != 0;
    for rank in slots::MEMBERS.filter(writes) {
        match (State::of(map, rank).0, slots::process(map, rank)) {
            (State::Dead { number }, _) => return Ok(Some(number)),
            (_, Some((process, _))) if all_ended || process.has_ended()? => return Ok(Some(process.number)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    /// No process has these numbers.
    const READER: u32 = 1 << 30;
    const WRITER: u32 = READER + 1;

    fn enter(map: &Mapping, rank: usize, process: Process, writes: bool) {
        slots::take(map, rank, process);
        map.slot_word(rank, layout::HOLDS).store(1, SeqCst);
        map.slot_word(rank, layout::WRITES).store(writes.into(), SeqCst);
    }

    fn dead(number: u32) -> Process {
        Process { number, started: 7 }
    }

    #[test]
    fn torn_data_name_the_process_of_the_rank() {
        let map = Mapping::blank();
        enter(&map, 4, dead(READER), false);
        enter(&map, 9, dead(WRITER), true);
        let by = |rank| process_of(&map, Rank::new(rank));
        assert_eq!((by(9), by(4)), (WRITER, READER));
        slots::bury(&map, 9, State::of(&map, 9).1);
        assert_eq!(by(9), WRITER, "a process that was found dead");
        assert_eq!((by(5), by(0), by(140), by(u32::MAX)), (0, 0, 0, 0), "ranks that no process is");
        publish(&map, 4711);
        assert_eq!((by(9), by(5)), (4711, 4711), "one that is in no slot");
        clear(&map);
        assert_eq!(by(9), WRITER);
    }

    #[test]
    fn the_next_file_names_the_process_that_tore_the_data() {
        let this = Process::this(std::path::Path::new("blank")).expect("it can be probed");
        let left = |map: &Mapping| left_by(map, false).expect("they can be probed");
        for is_buried in [false, true] {
            let map = Mapping::blank();
            assert_eq!(left(&map), None);
            // Before it a dead reader, and a writer that is alive.
            enter(&map, 2, dead(READER), false);
            enter(&map, 3, this, true);
            assert_eq!(left(&map), None, "readers tear nothing, nor do those that live");
            assert_eq!(left_by(&map, true), Ok(Some(this.number)), "after a start of the machine");
            enter(&map, 9, dead(WRITER), true);
            if is_buried {
                slots::bury(&map, 9, State::of(&map, 9).1);
            }
            assert_eq!(left(&map), Some(WRITER));
            publish(&map, 4711);
            assert_eq!(left(&map), Some(4711));
            slots::bury(&map, 9, State::of(&map, 9).1);
            clear(&map);
            assert_eq!(left(&map), None, "mended");
        }
    }
}
