//! Gates of other nodes, as a node knows them: mirrors, and the news that they are made of.
//!
//! A gate has at most two neighbours on other nodes: its remote source and its remote destination.
//! The rank whose gate it is keeps a mirror of each, which all ranks of the node read and only this
//! one writes ([`OwnGates::hear`](super::own::OwnGates::hear)). So what a rank keeps does not depend
//! on the number of ranks.
//!
//! * A gate that was fired, set or freed is told to the neighbours that its wires lead to; after
//!   setting, also to those that they led to. So news may come from any rank of a node, late and in
//!   any order: each has all there is to know, and a mirror takes what is later than what it has.
//! * Who sets a gate also asks its neighbours for theirs, since what they told before was not for
//!   this wire. Until the answer is here, nothing is known of a neighbour, and the gate waits.

use super::record::{At, Field, Half, Units, previous, slot, unpack};
use crate::shm::memory::word::Word;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use rdma_fabric::{
    Rank,
    barrier::{GateId, Wave},
};

/// What a node knows of the gate that a wire leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Its record, or its mirror.
    At(At),
    /// Nothing yet.
    NotYet,
    /// There is no such gate.
    Nowhere,
}

/// What a rank tells one of another node about a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Whose gate it is, and which.
    pub(crate) rank: Rank,
    pub(crate) index: u32,
    pub(crate) life: u64,
    pub(crate) setting: u64,
    /// The round fired last.
    pub(crate) fired: u64,
    /// Where the gate's wire leads that may lead to `to`.
    pub(crate) leads: GateId,
    /// The gate for which the news are.
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
    if !is_remote || !units.is_far(gate.rank()) || gate.index() as usize >= units.gates() {
        return Known::Nowhere;
    }
    let mirror = at.mirror(units, wire);
    // Acquire: pairs with the release in `OwnGates::hear`.
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
    let far = |wire, counts: bool| {
        let gate = GateId::from_bits(units.word(at, wire).load(Relaxed)).gate().filter(|_| counts)?;
        units.is_far(gate.rank()).then_some((at, wire, gate))
    };
    let wires = [far(Field::SourceRemote, half != Half::Start), far(Field::DestinationRemote, half != Half::End)];
    wires.into_iter().flatten()
}

/// Returns whether a gate of another node reads the record's packets.
#[inline]
pub(crate) fn has_listener<U: Units>(units: &U, at: At) -> bool {
    units.has_far() && wires(units, at).any(|(_, wire, _)| wire == Field::DestinationRemote)
}

/// Tells the neighbours of other nodes about the gate whose record is at `at`.
#[inline]
pub(crate) fn tell<U: Units>(units: &U, at: At) {
    if units.has_far() {
        tell_all(units, at);
    }
}

#[inline(never)]
fn tell_all<U: Units>(units: &U, at: At) {
    for (at, wire, to) in wires(units, at) {
        // Who sets the gate meanwhile tells of it.
        if let Some(news) = news(units, at, wire, to).filter(|news| news.leads == to) {
            units.tell(news);
        }
    }
}

/// Returns the news about the gate at `at` for one of another node, to which its `wire` leads or may
/// have led. `None` if its owner is setting or freeing it, who tells of it afterwards.
pub(crate) fn news<U: Units>(units: &U, at: At, wire: Field, to: GateId) -> Option<News> {
    let load = |field| units.word(at, field).load(Acquire);
    let packet = |round: u64| {
        let word = |index| units.packet(at, slot(round), index).load(Relaxed);
        let mut words = Vec::new();
        match Wave::decode(word) {
            Some(wave) => wave.encode(|_, word| words.push(word)),
            // Nothing that was fired: who reads it finds that, too.
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
        // The packet of this round is overwritten only when the next was fired. That of the round
        // before may be overwritten already, but then `to` has read it, and has it in its mirror.
        if unpack(after(Field::State)).0 == fired {
            let (rank, index) = (at.rank(), at.index(units) as u32);
            return Some(News { rank, index, life, setting, fired, leads, to, wire: wire.opposite(), packets });
        }
    }
}
