//! Wirings used by several tests.

use fabric_offload::barrier::{GateId, GateUnit, Gates, Wiring};
use rdma_fabric::Fabric;

/// Returns the wires of a member of two that exchange, as in recursive doubling: those of its
/// start/end gate and of its relay gate. `theirs` are the same two gates of the other member.
pub(crate) fn exchange([start, relay]: [GateId; 2], theirs: [GateId; 2]) -> [Wiring; 2] {
    let out = Wiring {
        source_local: Some(relay),
        destination_local: Some(relay),
        destination_remote: Some(theirs[1]),
        ..Wiring::none(start)
    };
    let back = Wiring {
        source_local: Some(start),
        destination_local: Some(start),
        source_remote: Some(theirs[0]),
        ..Wiring::none(relay)
    };
    [out, back]
}

/// Connects two ranks that exchange.
pub(crate) fn wire_exchange(fabrics: &[Fabric], gates: &[Gates; 2]) {
    let ids = |rank: usize| [gates[rank].ids()[0], gates[rank].ids()[1]];
    for (me, fabric) in fabrics.iter().take(2).enumerate() {
        GateUnit::of(fabric).set(&exchange(ids(me), ids(1 - me))).unwrap();
    }
}

/// Rank 0's start/end gate signals a relay gate of rank 1, the owner.
pub(crate) fn one_way(fabrics: &[Fabric]) -> [Gates; 2] {
    let gates = [GateUnit::of(&fabrics[0]).alloc(1).unwrap(), GateUnit::of(&fabrics[1]).alloc(2).unwrap()];
    let ([from], [start, relay]) = ([gates[0].start()], [gates[1].ids()[0], gates[1].ids()[1]]);
    GateUnit::of(&fabrics[0]).set(&[Wiring { destination_remote: Some(relay), ..Wiring::none(from) }]).unwrap();
    let own = Wiring { source_local: Some(relay), destination_local: Some(relay), ..Wiring::none(start) };
    let relay = Wiring {
        source_local: Some(start),
        source_remote: Some(from),
        destination_local: Some(start),
        ..Wiring::none(relay)
    };
    GateUnit::of(&fabrics[1]).set(&[own, relay]).unwrap();
    gates
}
