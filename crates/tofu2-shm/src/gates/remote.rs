//! Gates on other nodes: mirrors, and the updates ([`GateUpdate`]) that maintain them.
//!
//! A gate has at most two neighbours on other nodes: its remote source and its remote destination.
//! The rank that owns the gate keeps a mirror of each. All ranks of the node read the mirrors; only
//! the owner writes them ([`OwnGates::apply`](super::own::OwnGates::apply)). The mirrors of a rank
//! therefore take memory that does not depend on the number of ranks.
//!
//! * When a gate fires, is set or is freed, updates are sent to the neighbours to which its wires
//!   lead; after setting, also to those to which its wires led before. Updates may come from any
//!   rank of a node, late and in any order: each contains the complete state, and a mirror accepts
//!   only an update that is newer than its contents.
//! * A rank that sets a gate also requests updates from the gate's neighbours, because their
//!   earlier updates were not for this wire. Until the answer arrives, the state of the neighbour
//!   is unknown, and the gate waits.

use super::record::{At, Field, Half, Units, previous, slot, unpack};
use crate::memory::word::Word;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use rdma_fabric::{
    Rank,
    barrier::{GateId, Wave},
};

/// A node's knowledge about the gate to which a wire leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// The gate's record, or its mirror.
    At(At),
    /// No update has arrived yet.
    NotYet,
    /// The gate does not exist.
    Nowhere,
}

/// An update: the state of a gate, sent to a rank of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateUpdate {
    /// The gate's owner and index.
    pub(crate) rank: Rank,
    pub(crate) index: u32,
    pub(crate) life: u64,
    pub(crate) setting: u64,
    /// The last round that fired.
    pub(crate) fired: u64,
    /// The gate to which the wire opposite to `wire` leads, which may be `to`.
    pub(crate) leads: GateId,
    /// The gate for which the update is.
    pub(crate) to: GateId,
    /// The wire of `to` at whose other end the gate is.
    pub(crate) wire: Field,
    /// If `to` may read them: the packets of the last round and of the one before.
    pub(crate) packets: [Vec<u64>; 2],
}

/// Returns the outputs of a source of the gate whose inputs are at `at`.
#[inline]
pub(crate) fn source<U: Units>(units: &U, at: At, wire: Field, source: GateId) -> Known {
    At::outputs(units, source).map_or_else(|| mirror(units, at, wire, source), Known::At)
}

/// Returns the inputs of a destination of the gate whose outputs are at `at`.
#[inline]
pub(crate) fn destination<U: Units>(units: &U, at: At, wire: Field, destination: GateId) -> Known {
    At::inputs(units, destination).map_or_else(|| mirror(units, at, wire, destination), Known::At)
}

/// Returns the mirror of a gate that has no record on this node.
#[inline(never)]
fn mirror<U: Units>(units: &U, at: At, wire: Field, gate: GateId) -> Known {
    let is_remote = matches!(wire, Field::SourceRemote | Field::DestinationRemote);
    if !is_remote || !units.is_remote(gate.rank()) || gate.index() as usize >= units.gates() {
        return Known::Nowhere;
    }
    let mirror = at.mirror(units, wire);
    // Acquire: pairs with the release in `OwnGates::apply`.
    let named = units.word(mirror, Field::Posted).load(Acquire) == gate.to_bits();
    if named { Known::At(mirror) } else { Known::NotYet }
}

/// Makes the mirrors of a record mirror nothing.
pub(crate) fn forget<U: Units>(units: &U, at: At) {
    for (_, wire, _) in wires(units, at) {
        units.word(at.mirror(units, wire), Field::Posted).store(0, Relaxed);
    }
}

/// Returns the wires of a record that lead to other nodes: the record, the wire, and the gate there.
pub(crate) fn wires<U: Units>(units: &U, at: At) -> impl Iterator<Item = (At, Field, GateId)> + use<U> {
    let half = at.half(units);
    let remote = |wire, counts: bool| {
        let gate = GateId::from_bits(units.word(at, wire).load(Relaxed)).gate().filter(|_| counts)?;
        units.is_remote(gate.rank()).then_some((at, wire, gate))
    };
    let wires = [remote(Field::SourceRemote, half != Half::Start), remote(Field::DestinationRemote, half != Half::End)];
    wires.into_iter().flatten()
}

/// Returns whether a gate of another node reads the record's packets.
#[inline]
pub(crate) fn has_listener<U: Units>(units: &U, at: At) -> bool {
    units.has_remote() && wires(units, at).any(|(_, wire, _)| wire == Field::DestinationRemote)
}

/// Sends an update about the gate whose record is at `at` to its neighbours on other nodes.
#[inline]
pub(crate) fn send<U: Units>(units: &U, at: At) {
    if units.has_remote() {
        send_all(units, at);
    }
}

#[inline(never)]
fn send_all<U: Units>(units: &U, at: At) {
    for (at, wire, to) in wires(units, at) {
        // If the owner is setting the gate concurrently, it sends the updates itself.
        if let Some(update) = update(units, at, wire, to).filter(|update| update.leads == to) {
            units.send(update);
        }
    }
}

/// Returns an update about the gate at `at` for the gate `to` of another node, to which its `wire`
/// leads or may have led. Returns `None` while the owner is setting or freeing the gate; the owner
/// sends an update afterwards.
pub(crate) fn update<U: Units>(units: &U, at: At, wire: Field, to: GateId) -> Option<GateUpdate> {
    let load = |field| units.word(at, field).load(Acquire);
    let packet = |round: u64| {
        let word = |index| units.packet(at, slot(round), index).load(Relaxed);
        let mut words = Vec::new();
        match Wave::decode(word) {
            Some(wave) => wave.encode(|_, word| words.push(word)),
            // Not a valid packet: it does not decode at the receiver either.
            None => words.push(word(0)),
        }
        words
    };
    loop {
        // Acquire: pairs with the releases in `OwnGates::set`, `take` and `free`, and with F4.
        let (setting, life) = (load(Field::Setting), load(Field::Life));
        let fired = unpack(load(Field::State)).0;
        let leads = GateId::from_bits(units.word(at, wire).load(Relaxed));
        let packets = match wire {
            Field::DestinationRemote => [packet(fired), packet(previous(fired))],
            _ => Default::default(),
        };
        // Pairs with the release fences of `OwnGates::set` and `fire`.
        units.fence(Acquire);
        let after = |field| units.word(at, field).load(Relaxed);
        if setting % 2 == 1 || after(Field::Setting) != setting || after(Field::Life) != life {
            return None;
        }
        // The packet of this round is overwritten only after the next round has fired. That of the
        // round before may already be overwritten, but then `to` has read it and has it in its
        // mirror.
        if unpack(after(Field::State)).0 == fired {
            let (rank, index) = (at.rank(), at.index(units) as u32);
            return Some(GateUpdate { rank, index, life, setting, fired, leads, to, wire: wire.opposite(), packets });
        }
    }
}
