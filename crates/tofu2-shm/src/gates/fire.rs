//! Execution of gates: the protocol by which any CPU executes the gates whose inputs its signal
//! completes.
//!
//! A signal is not sent: it stays in the gate that fired, whose *state* gives the round, and its
//! destination gates read it there. So a gate can fire round *r* when each of its sources has fired
//! *r*, and each of its destinations *r* − 2, whose packet is overwritten. All these are conditions
//! on words that only grow, so a CPU that finds them true may execute the gate at any later time:
//!
//! ```text
//! F1  check sources and destinations          until then nothing is written
//! F2  claim: state (r − 1, nobody) → (r − 1, me), CAS     one of the ranks that found it ready
//! F3  combine the sources' packets into this gate's packet of r
//! F4  publish: state ← (r, nobody)            release
//! F5  full barrier; notify neighbours on other nodes
//! F6  check (F1) the destinations, the sources, and this gate again
//! ```
//! *No event is missed.* The CPU that completes a gate's last condition has published it (F4) and
//! then checks the gate (F6). If two CPUs do so at the same time, each after its own full barrier,
//! at least one of them sees both events. If the gate is claimed at that moment, the claimant
//! checks it again after its own F5, and sees everything published before the gate was found
//! claimed. A worklist replaces recursion.
//!
//! *Rounds.* Neighbours may be one round ahead with their signal but never two, because no packet
//! that is still to be read is overwritten. Any other distance means that a record is damaged, or
//! that only one side has set its gates again.
//!
//! *Death.* A rank that dies between F2 and F4 leaves the gate claimed forever. No rank reads its
//! partial packet, because the state still holds *r* − 1. Waits of ranks that depend on it fail
//! with [`PeerLost`](rdma_fabric::FabricError::PeerLost).
//!
//! *Freed gates.* A freed source keeps its packets until its destinations have fired, and a freed
//! destination is a fault. A freed source without a packet for this round counts as one that
//! signals this fault.
//!
//! *Other nodes.* Only ranks of a gate's node execute it. Other nodes have mirrors of it
//! ([`remote`]), which follow it: the CPU that publishes a round sends an update to the neighbours
//! there. The neighbour's rank, or a thread that receives on its behalf, writes the update into the
//! mirror, as F4 does, and continues with F5 and F6. So a mirror also only grows, and a condition
//! that is true of a mirror is true of the gate. A packet is read from the mirror; it is
//! overwritten there by the packet of two rounds later, which its gate fires only when the mirror
//! of the reader shows that this one was read. If a rank dies after F4 but before it has sent the
//! update, other nodes do not receive the round: again, waits of ranks that depend on the dead rank
//! fail.

use super::{
    record::{At, Field, Half, Units, ahead, next, pack, slot, unpack},
    remote::{self, Known},
};
use crate::memory::word::Word;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use rdma_fabric::{
    Rank,
    barrier::{GateId, RoundFault, Wave},
};

/// The first word in the packet of an end half without sources.
pub(super) const NOTHING: u64 = 0xff;

/// Checks these gates, executes those that can fire, and continues with the gates that these
/// complete. The caller has already written its signals to them.
pub(crate) fn run<U: Units>(units: &U, me: Rank, mut work: Vec<At>) {
    work.reserve(6);
    // F5, for the caller's own writes.
    units.fence(SeqCst);
    while let Some(at) = work.pop() {
        if fire(units, me, at) {
            remote::send(units, at);
            // F6; this gate is pushed last, so that it is checked first.
            work.extend(neighbours(units, at));
            work.push(at);
        }
    }
}

/// Returns the records of this node that an event at `at` may affect.
pub(crate) fn neighbours<U: Units>(units: &U, at: At) -> impl Iterator<Item = At> {
    let half = at.half(units);
    let wire = |field| GateId::from_bits(units.word(at, field).load(Relaxed)).gate();
    let sources = Field::SOURCES.map(|field| wire(field).filter(|_| half != Half::Start));
    let destinations = Field::DESTINATIONS.map(|field| wire(field).filter(|_| half != Half::End));
    let sources = sources.map(|gate| gate.and_then(|gate| At::outputs(units, gate)));
    let destinations = destinations.map(|gate| gate.and_then(|gate| At::inputs(units, gate)));
    let end = (half == Half::Start).then(|| At::end_of(units, at));
    sources.into_iter().chain(destinations).flatten().chain(end)
}

/// An input's contribution to a round.
#[derive(Clone, Copy)]
enum Input {
    /// The packet in this slot; `of` is the gate to which it belongs, which may be freed in the
    /// meantime.
    Packet { at: At, slot: usize, of: GateId },
    /// The gate will not signal this round.
    Fault(RoundFault),
}

/// The inputs and faults that F1 found.
struct Ready {
    inputs: [Option<Input>; 2],
    /// For the end half of a start/end gate, the start half, which has fired this round.
    sent: Option<At>,
    fault: Option<RoundFault>,
}

/// Executes the next round of a gate if it can fire. Returns whether it did.
fn fire<U: Units>(units: &U, me: Rank, at: At) -> bool {
    loop {
        let state = units.word(at, Field::State);
        // Acquire: pairs with the release in F4, so that the words read below are not older than
        // this round.
        let seen = state.load(Acquire);
        let (fired, claimant) = unpack(seen);
        // Acquire: pairs with the release in `OwnGates`, for the wires.
        let life = units.word(at, Field::Life).load(Acquire);
        if claimant != 0 || life.is_multiple_of(2) || life >= u64::from(GateId::GENERATIONS) {
            return false;
        }
        let gate = GateId::new(at.rank(), at.index(units) as u32, life as u32);
        let round = next(fired);
        let Some(ready) = look(units, at, gate, round) else { return false };
        // F2. Acquire: what F1 found is still true.
        if state.replace(seen, pack(fired, me.number() + 1), AcqRel, Relaxed).is_err() {
            continue;
        }
        if units.word(at, Field::Life).load(Acquire) != life {
            // The gate was freed, and perhaps allocated again. Others that found it claimed in the
            // meantime rely on this CPU.
            state.store(seen, Release);
            units.fence(SeqCst);
            continue;
        }
        if remote::has_listener(units, at) {
            // Pairs with the fence of `remote::update`: a reader that sees a word of the new packet
            // also sees the round before it.
            units.fence(Release);
        }
        let wave = combine(units, gate, ready);
        // Release: pairs with the fence in `read`.
        match wave {
            Some(wave) => wave.encode(|index, word| units.packet(at, slot(round), index).store(word, Relaxed)),
            None => units.packet(at, slot(round), 0).store(NOTHING, Relaxed),
        }
        // F4. Release: pairs with the acquire in `look` and `outcome`.
        state.store(pack(round, 0), Release);
        // F5.
        units.fence(SeqCst);
        if at.half(units) == Half::End {
            units.ended(at);
        }
        return true;
    }
}

/// Executes F1: returns the inputs and faults with which the gate can fire; `None` if one is
/// missing.
fn look<U: Units>(units: &U, at: At, gate: GateId, round: u64) -> Option<Ready> {
    let half = at.half(units);
    let mut ready = Ready { inputs: [None, None], sent: None, fault: None };
    match half {
        Half::Start => {
            // Acquire: pairs with the release in `OwnGates::start`.
            if units.word(at, Field::Posted).load(Acquire) != round {
                return None;
            }
            ready.inputs[0] = Some(Input::Packet { at: At::end_of(units, at), slot: slot(next(round)), of: gate });
        }
        Half::End => {
            let start = At::start_of(units, at);
            // Acquire: pairs with F4.
            let (sent, _) = unpack(units.word(start, Field::State).load(Acquire));
            if sent != round {
                return None;
            }
            ready.sent = Some(start);
        }
        Half::Relay => {}
    }
    if half != Half::Start {
        for (input, field) in ready.inputs.iter_mut().zip(Field::SOURCES) {
            if let Some(source) = GateId::from_bits(units.word(at, field).load(Relaxed)).gate() {
                let from = remote::source(units, at, field, source);
                *input = Some(arrival(units, gate, (source, from), field, round)?);
            }
        }
        if half == Half::Relay && ready.inputs.iter().all(Option::is_none) {
            // The gate was never set.
            return None;
        }
    }
    let mut is_heard = half != Half::Relay;
    if half != Half::End {
        for field in Field::DESTINATIONS {
            if let Some(destination) = GateId::from_bits(units.word(at, field).load(Relaxed)).gate() {
                let to = remote::destination(units, at, field, destination);
                let fault = room(units, gate, (destination, to), field, round)?;
                is_heard |= fault.is_none();
                ready.fault = ready.fault.into_iter().chain(fault).min();
            }
        }
    }
    (is_heard || ready.inputs.into_iter().flatten().any(|input| is_driven(units, input))).then_some(ready)
}

/// Returns whether an input originates in an operation that a host started. A gate without
/// listeners fires only for such inputs: faults that arise by themselves would otherwise continue
/// forever, round after round.
fn is_driven<U: Units>(units: &U, input: Input) -> bool {
    match input {
        Input::Fault(_) => false,
        Input::Packet { of, .. } if (of.index() as usize) < units.starts() => true,
        Input::Packet { at, slot, .. } => {
            let wave = Wave::decode(|index| units.packet(at, slot, index).load(Relaxed));
            matches!(wave, Some(Wave::Values(_) | Wave::Sums(_)))
        }
    }
}

/// Returns 0 if the gate with this ID is live, 1 if it has been freed since, and `None` otherwise.
fn age<U: Units>(units: &U, at: At, gate: GateId) -> Option<u64> {
    // Acquire: pairs with the release in `OwnGates`, for the wires.
    units.word(at, Field::Life).load(Acquire).checked_sub(gate.generation().into()).filter(|age| *age < 2)
}

/// Returns the contribution of `source` to `gate` in `round`; `None` if it may still arrive.
fn arrival<U: Units>(
    units: &U,
    gate: GateId,
    (source, from): (GateId, Known),
    field: Field,
    round: u64,
) -> Option<Input> {
    let from = match from {
        Known::At(from) => from,
        Known::NotYet => return None,
        Known::Nowhere => return Some(Input::Fault(RoundFault::Corrupt(gate.rank()))),
    };
    let Some(age) = age(units, from, source) else { return Some(Input::Fault(RoundFault::Freed(source))) };
    if units.word(from, field.opposite()).load(Relaxed) != gate.to_bits() {
        return Some(Input::Fault(RoundFault::PointsElsewhere { gate: source, by: gate }));
    }
    // Acquire: pairs with F4, for the packet.
    let (fired, _) = unpack(units.word(from, Field::State).load(Acquire));
    match ahead(fired, round) {
        Some(0 | 1) => Some(Input::Packet { at: from, slot: slot(round), of: source }),
        Some(-1) if age == 0 => None,
        Some(-1) => Some(Input::Fault(RoundFault::Freed(source))),
        _ => Some(Input::Fault(RoundFault::Corrupt(source.rank()))),
    }
}

/// Returns the fault of `destination`, or `Some(None)` if it has room; `None` if it has yet to read
/// the packet of two rounds ago.
fn room<U: Units>(
    units: &U,
    gate: GateId,
    (destination, to): (GateId, Known),
    field: Field,
    round: u64,
) -> Option<Option<RoundFault>> {
    let to = match to {
        Known::At(to) => to,
        Known::NotYet => return None,
        Known::Nowhere => return Some(Some(RoundFault::Corrupt(gate.rank()))),
    };
    if age(units, to, destination) != Some(0) {
        return Some(Some(RoundFault::Freed(destination)));
    }
    if units.word(to, field.opposite()).load(Relaxed) != gate.to_bits() {
        return Some(Some(RoundFault::PointsElsewhere { gate: destination, by: gate }));
    }
    // Acquire: pairs with F4. A packet that the destination has read may be overwritten.
    let (fired, _) = unpack(units.word(to, Field::State).load(Acquire));
    match ahead(round, fired) {
        Some(1 | 2) => Some(None),
        Some(3) => None,
        _ => Some(Some(RoundFault::Corrupt(destination.rank()))),
    }
}

/// Does F3: combines the inputs.
fn combine<U: Units>(units: &U, gate: GateId, ready: Ready) -> Option<Wave> {
    let read = |input: Input| match input {
        Input::Fault(fault) => Wave::Fault(fault),
        Input::Packet { at, slot, of } => {
            let wave = Wave::decode(|index| units.packet(at, slot, index).load(Relaxed));
            // If the record of this gate is in use again, it may contain other packets by now.
            match age(units, at, of) {
                Some(_) => wave.unwrap_or(Wave::Fault(RoundFault::Corrupt(of.rank()))),
                None => Wave::Fault(RoundFault::Freed(of)),
            }
        }
    };
    let inputs = ready.inputs.into_iter().flatten().map(read);
    // A start/end gate reports a fault of its own signal, regardless of the signal that it
    // receives.
    let sent = ready.sent.and_then(|at| {
        let (fired, _) = unpack(units.word(at, Field::State).load(Relaxed));
        match Wave::decode(|index| units.packet(at, slot(fired), index).load(Relaxed)) {
            Some(fault @ Wave::Fault(_)) => Some(fault),
            _ => None,
        }
    });
    inputs.chain(sent).chain(ready.fault.map(Wave::Fault)).reduce(|a, b| a.merge(b, gate))
}
