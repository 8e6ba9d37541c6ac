//! A gate's record, and the validation of words of shared memory as positions of records.
//!
//! ```text
//! record: | life | state | four wires | posted | setting | packet of even rounds | packet of odd rounds |
//! ```
//! * *life*: odd while the gate is allocated; incremented whenever that changes. A gate's ID
//!   contains this number.
//! * *state*: the round fired last (39 bits), and the rank that is executing the next one: rank + 1
//!   (25 bits), or 0.
//! * *posted*: in a start half, the last round for which its host has passed values; in a mirror,
//!   the ID of the gate that it mirrors.
//! * *setting*: incremented by two whenever the gate is set, and odd in the meantime. It
//!   distinguishes the rounds of one setting from those of the next.
//! * A *packet* is the signal of a round, as [`Wave`](rdma_fabric::barrier::Wave) encodes it.
//!
//! A relay gate has one record, a start/end gate two: its *start half*, of which only the
//! destinations are used, and its *end half*, of which only the sources are used. The end half's
//! packet of a round is the result; until that round has completed, the other packet, whose result
//! the host has already taken, holds the host's values for the round.
//!
//! A gate of another node has no record here, but a *mirror*, a record that belongs to the rank at
//! the other end of the wire: see [`remote`](super::remote).

use super::remote::GateUpdate;
use crate::memory::word::Word;
use core::sync::atomic::Ordering;
use rdma_fabric::{
    Rank,
    barrier::{GateId, Wiring},
};

/// The words of a record's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Life = 0,
    State = 1,
    SourceLocal = 2,
    SourceRemote = 3,
    DestinationLocal = 4,
    DestinationRemote = 5,
    Posted = 6,
    Setting = 7,
}

impl Field {
    pub(crate) const SOURCES: [Field; 2] = [Field::SourceLocal, Field::SourceRemote];
    pub(crate) const DESTINATIONS: [Field; 2] = [Field::DestinationLocal, Field::DestinationRemote];
    pub(crate) const WIRES: [Field; 4] =
        [Field::SourceLocal, Field::SourceRemote, Field::DestinationLocal, Field::DestinationRemote];

    /// Returns the wire at the other end.
    pub(crate) fn opposite(self) -> Field {
        match self {
            Field::SourceLocal => Field::DestinationLocal,
            Field::SourceRemote => Field::DestinationRemote,
            Field::DestinationLocal => Field::SourceLocal,
            Field::DestinationRemote => Field::SourceRemote,
            other => other,
        }
    }
}

/// All ranks' records.
pub(crate) trait Units {
    type Word: Word;
    fn ranks(&self) -> usize;
    /// Returns the number of a rank's start/end gates, which come first.
    fn starts(&self) -> usize;
    /// Returns the number of all gates of a rank.
    fn gates(&self) -> usize;
    fn word(&self, at: At, field: Field) -> &Self::Word;
    /// Returns word `index` of packet `slot`, 0 or 1.
    fn packet(&self, at: At, slot: usize, index: usize) -> &Self::Word;
    /// Makes a barrier.
    fn fence(&self, order: Ordering);
    /// Wakes the host of an end half that has fired.
    fn ended(&self, at: At);
    /// Returns whether there may be other nodes.
    fn has_remote(&self) -> bool;
    /// Returns whether the records of a rank are on another node.
    fn is_remote(&self, rank: Rank) -> bool;
    /// Sends an update to the rank of another node that owns the updated gate's neighbour.
    fn send(&self, update: GateUpdate);
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Start,
    Relay,
    End,
}

/// The position of a record of this node, or of a mirror. It always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    rank: u32,
    node: u16,
}

impl At {
    /// Returns the record with the outputs of gate `index` of a rank; `None` if there is no such
    /// rank or gate on this node.
    pub(crate) fn new(units: &impl Units, rank: Rank, index: usize) -> Option<At> {
        let exists = rank.index() < units.ranks() && index < units.gates() && !units.is_remote(rank);
        exists.then_some(At { rank: rank.number(), node: index as u16 })
    }

    /// Returns the record that has the outputs of `gate`.
    pub(crate) fn outputs(units: &impl Units, gate: GateId) -> Option<At> {
        At::new(units, gate.rank(), gate.index() as usize)
    }

    /// Returns the record that has the inputs of `gate`.
    pub(crate) fn inputs(units: &impl Units, gate: GateId) -> Option<At> {
        let at = At::outputs(units, gate)?;
        Some(if at.half(units) == Half::Start { At::end_of(units, at) } else { at })
    }

    /// Returns the end half that belongs to a start half.
    pub(crate) fn end_of(units: &impl Units, start: At) -> At {
        At { node: start.node + units.gates() as u16, ..start }
    }

    /// Returns the start half that belongs to an end half.
    pub(crate) fn start_of(units: &impl Units, end: At) -> At {
        At { node: end.node - units.gates() as u16, ..end }
    }

    /// Returns the mirror of the gate of another node to which the record's remote wire leads: its
    /// source, or its destination.
    pub(crate) fn mirror(self, units: &impl Units, wire: Field) -> At {
        let kinds = if wire == Field::SourceRemote { 1 } else { 2 };
        At { node: self.node + kinds * records(units) as u16, ..self }
    }

    /// Returns the kind of a record that is not a mirror.
    pub(crate) fn half(self, units: &impl Units) -> Half {
        match usize::from(self.node) {
            node if node < units.starts() => Half::Start,
            node if node < units.gates() => Half::Relay,
            _ => Half::End,
        }
    }

    pub(crate) fn rank(self) -> Rank {
        Rank::new(self.rank)
    }

    /// Returns the number of the record; mirrors of sources have those behind all records, and mirrors
    /// of destinations those behind these.
    pub(crate) fn node(self) -> usize {
        self.node.into()
    }

    /// Returns the number of the gate.
    pub(crate) fn index(self, units: &impl Units) -> usize {
        let node = self.node();
        if node < units.gates() { node } else { node - units.gates() }
    }
}

/// Returns the number of a rank's records.
pub(crate) fn records(units: &impl Units) -> usize {
    units.gates() + units.starts()
}

const RANK_BITS: u32 = 25;
/// The number of rounds before they wrap.
pub(crate) const ROUNDS: u64 = 1 << (u64::BITS - RANK_BITS);

/// Returns the round fired last, and which rank executes the next: rank + 1, or 0.
pub(crate) fn unpack(state: u64) -> (u64, u32) {
    (state >> RANK_BITS, state as u32 % (1 << RANK_BITS))
}

pub(crate) fn pack(fired: u64, claimant: u32) -> u64 {
    fired << RANK_BITS | u64::from(claimant)
}

/// Returns the previous round.
pub(crate) fn previous(round: u64) -> u64 {
    round.wrapping_sub(1) % ROUNDS
}

/// Returns whether `a` is a later round than `b`.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn is_later(a: u64, b: u64) -> bool {
    (1..ROUNDS / 2).contains(&(a.wrapping_sub(b) % ROUNDS))
}

/// Returns the next round.
pub(crate) fn next(round: u64) -> u64 {
    (round + 1) % ROUNDS
}

/// Returns the number of rounds that `a` is ahead of `b`, if the difference is small.
pub(crate) fn ahead(a: u64, b: u64) -> Option<i8> {
    let difference = a.wrapping_sub(b) % ROUNDS;
    match difference {
        0..4 => Some(difference as i8),
        _ if difference >= ROUNDS - 4 => Some(-((ROUNDS - difference) as i8)),
        _ => None,
    }
}

/// Returns which of the two packets a round uses.
pub(crate) fn slot(round: u64) -> usize {
    (round % 2) as usize
}

/// Returns the wires of the rank's own gate whose outputs are at `at`.
pub(crate) fn wiring(units: &impl Units, at: At, gate: GateId) -> Wiring {
    let inputs = if at.half(units) == Half::Start { At::end_of(units, at) } else { at };
    let read = |at, field| GateId::from_bits(units.word(at, field).load(Ordering::Relaxed)).gate();
    Wiring {
        gate,
        source_local: read(inputs, Field::SourceLocal),
        source_remote: read(inputs, Field::SourceRemote),
        destination_local: read(at, Field::DestinationLocal),
        destination_remote: read(at, Field::DestinationRemote),
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn rounds_wrap() {
        assert_eq!(next(ROUNDS - 1), 0);
        assert_eq!((ahead(1, ROUNDS - 1), ahead(ROUNDS - 1, 1), ahead(5, 5)), (Some(2), Some(-2), Some(0)));
        assert_eq!((ahead(9, 1), ahead(1, 9)), (None, None));
        assert_eq!((previous(0), is_later(1, ROUNDS - 1), is_later(ROUNDS - 1, 1)), (ROUNDS - 1, true, false));
        assert!(!is_later(4, 4));
        assert_eq!(unpack(pack(ROUNDS - 1, (1 << 24) + 1)), (ROUNDS - 1, (1 << 24) + 1));
        // A round bit instead of a number would confuse a neighbour that is two ahead with one of
        // this round.
        assert_eq!(slot(ROUNDS), slot(0));
    }
}
