//! The tables of the machines with Tofu. Each line has a constant's name, value, unit, the figures
//! it was set from, and its note.
//!
//! TofuD is separate: none of its values is used for Tofu2. Most numbers about control queues are
//! public only for TofuD, from the behaviour of its system library. Where Tofu2's table uses one,
//! its note states that it is assumed.

use super::{Constant, Unit};
use std::borrow::Cow;

macro_rules! constants {
    ($($name:literal = $value:literal $unit:ident $([$($from:literal),+])? : $note:literal;)+) => {
        vec![$(Constant {
            name: $name,
            value: $value,
            unit: Unit::$unit,
            from: &[$($($from),+)?],
            note: Cow::Borrowed($note),
        }),+]
    };
}

pub(super) use constants;

/// PRIMEHPC FX100, Tofu interconnect 2.
pub(super) fn fx100() -> Vec<Constant> {
    let machine = constants! {
        "atomics" = 2 Count: "hardware: in the network interface (2); by software would be 1, none 0";
        "atomic_service" = 269_500 Picoseconds ["L4"]: "69 us / 128 ranks / 2 atomics: one atomic at the target's unit";
        "atomic_serial" = 4_700 PerTenThousand ["L13"]:
            "serial share of the atomic unit: 40 % less time with 4 engines";
        "put_one_way" = 710_000 Picoseconds:
            "8-byte put to a neighbour; external: TofuD abstract (0.49 us is 31 % less)";
        "wire_round_trip" = 520_000 Picoseconds ["A9"]: "remote minus local, neighbouring nodes";
        "post" = 150_000 Picoseconds: "assumed share of node side: CPU writes the command; also polling a result";
        "send_engine" = 150_000 Picoseconds: "assumed share of node side: latency of the send engine";
        "send_gap" = 100_000 Picoseconds: "assumed: shortest distance of two commands of one send engine";
        "hop" = 100_000 Picoseconds: "assumed: each hop after the first";
        "link_byte" = 80_000 FemtosecondsPerByte: "hardware: 12.5 GB/s per link and direction";
        "payload_byte" = 100_000 FemtosecondsPerByte ["R2"]: "10 GB/s payload per engine";
        "packet_payload" = 1_920 Bytes: "largest packet's payload (TofuD's value, assumed here)";
        "packet_overhead" = 144 Bytes: "assumed: header and trailer of a packet";
        "engines" = 4 Count: "hardware: TNIs per node";
        "queues_per_engine" = 12 Count: "hardware: CQs per TNI";
        "transmit_queue" = 2_048 Count: "TOQ slots, the system library's default";
        "receive_queue" = 2_048 Count: "assumed: MRQ slots for notices";
        "engine_room" = 2 Count: "assumed: atomics that a receive engine holds, the one in service included";
        "queue_chain" = 440_000 Picoseconds ["R3 low"]:
            "once per chain of puts by which a rank's queues release themselves: 1.2 of FAST where that is lowest, minus what is modelled";
        "max_transfer" = 16_777_215 Bytes: "hardware: longest single transfer";
        "notice_bits" = 8 Bits: "hardware: width of a notice's data";
        "third_party_copy" = 0 Count:
            "hardware: one end of a put or get is the poster's memory; 1: what if neither need be";
        "block_puts" = 1 Count: "a posting may put several blocks, as one of a control queue does; 0: what if not";
        "multicast" = 0 Picoseconds: "hardware: none (0); else from the crossbar that all pass to the members";
        "yield" = 50_000 Picoseconds: "assumed: one turn of a program's own polling loop";
        "node_memory" = 34_359_738_368 Bytes: "hardware: 32 GiB per node";
        "barrier_gate" = 150_000 Picoseconds:
            "proposal, not calibrated: middle of 0.1 to 0.2 us for one gate of the barrier unit";
        "barrier_channels" = 8 Count: "recalled, unconfirmed: start/end gates of a node's barrier unit (one TNI)";
        "barrier_gates" = 64 Count: "recalled, unconfirmed: all gates of a node's barrier unit (one TNI)";
        "copy_threads" = 1 Count: "what a program decides: threads that share each copy of a rank";
        "software.bare" = 0 Picoseconds: "no software layer";
        "software.copy" = 100_000 FemtosecondsPerByte: "assumed: one thread copies 10 GB/s";
        "software.pack" = 125_000 FemtosecondsPerByte: "assumed: one thread packs or unpacks 8 GB/s in short runs";
        "software.descriptor" = 0 Picoseconds: "unknown: what building a descriptor takes is inside `post`";
        "software.fjmpi" = 570_000 Picoseconds ["A9"]:
            "extended RDMA library: 1.74 us local minus the modelled loopback";
        "software.acp.thread" = 1_430_000 Picoseconds ["A1 local"]: "ACP command queue and communication thread";
        "software.acp.served" = 1_430_000 Picoseconds ["A1 local"]:
            "assumed: what another rank delegates costs its server as much as a command of its own";
        "software.prdma.start" = 1_792_000 Picoseconds ["R1"]:
            "5 us minus the modelled FAST exchange of 16 KiB with two neighbours: library and start of the session";
        "software.acp.descriptor" = 130_000 Picoseconds ["A3 local", "A4 local"]:
            "3.36 - 3.23 us: ACP builds a descriptor for each operation unless it is optimised; in ACP, above `post`";
        "software.acp.network" = 630_500 Picoseconds ["A3 local", "A1 local"]:
            "3.36 us minus thread, descriptor and the modelled loopback: what ACP does for an operation of the network";
        "software.acp.thread_safe" = 280_000 Picoseconds ["A5 local", "A3 local"]: "thread safety, hardware path";
        "software.acp.thread_safe_cpu" = 740_000 Picoseconds ["A2 local", "A1 local"]:
            "thread safety where the CPU does the atomic";
        "software.acp.bypass" = 230_000 Picoseconds ["A7 local", "A5 local"]:
            "bypass of the communication thread: 3.87 - 3.64 us, so it hides nothing";
    };
    [machine, tofu2_queues()].concat()
}

/// PRIMEHPC FX10, Tofu interconnect 1: no session mode.
pub(super) fn fx10() -> Vec<Constant> {
    let machine = constants! {
        "atomics" = 1 Count: "hardware: none in Tofu1, so a service in software (1)";
        "atomic_service" = 222_656_250 Picoseconds ["L11"]:
            "no atomics in hardware: 114 s / 1000 pairs / 256 ranks / 2 of the software lock service";
        "atomic_serial" = 10_000 PerTenThousand: "assumed: one server per node";
        "put_one_way" = 910_000 Picoseconds: "8-byte put to a neighbour; external: TofuD abstract's comparison";
        "wire_round_trip" = 520_000 Picoseconds: "assumed as on FX100";
        "post" = 200_000 Picoseconds: "assumed share of node side";
        "send_engine" = 225_000 Picoseconds: "assumed share of node side";
        "send_gap" = 100_000 Picoseconds: "assumed: shortest distance of two commands of one send engine";
        "hop" = 100_000 Picoseconds: "assumed: each hop after the first";
        "link_byte" = 200_000 FemtosecondsPerByte: "external: 5 GB/s per link and direction";
        "payload_byte" = 210_084 FemtosecondsPerByte: "external: 4.76 GB/s single put stream";
        "packet_payload" = 1_920 Bytes: "assumed as on FX100";
        "packet_overhead" = 101 Bytes: "recalled: 95 % link efficiency, with full packets";
        "engines" = 4 Count: "hardware: TNIs per node";
        "queues_per_engine" = 12 Count: "assumed as on FX100";
        "transmit_queue" = 2_048 Count: "assumed as on FX100";
        "receive_queue" = 2_048 Count: "assumed as on FX100";
        "engine_room" = 2 Count: "assumed as on FX100";
        "queue_chain" = 0 Picoseconds: "hardware: no session mode, so no such puts";
        "max_transfer" = 16_777_215 Bytes: "hardware: longest single transfer";
        "notice_bits" = 8 Bits: "hardware: width of a notice's data";
        "third_party_copy" = 0 Count:
            "hardware: one end of a put or get is the poster's memory; 1: what if neither need be";
        "block_puts" = 0 Count: "nothing known of such postings (0); 1: what if";
        "multicast" = 0 Picoseconds: "hardware: none (0); else from the crossbar that all pass to the members";
        "yield" = 50_000 Picoseconds: "assumed: one turn of a program's own polling loop";
        "node_memory" = 34_359_738_368 Bytes: "external: 32 GiB per node";
        "barrier_gate" = 150_000 Picoseconds: "proposal as on FX100, not calibrated";
        "barrier_channels" = 8 Count: "recalled, unconfirmed: as on FX100";
        "barrier_gates" = 64 Count: "recalled, unconfirmed: as on FX100";
        "copy_threads" = 1 Count: "what a program decides: threads that share each copy of a rank";
        "software.bare" = 0 Picoseconds: "no software layer";
        "software.copy" = 200_000 FemtosecondsPerByte: "assumed: one thread copies 5 GB/s";
        "software.pack" = 250_000 FemtosecondsPerByte: "assumed: one thread packs or unpacks 4 GB/s in short runs";
        "software.descriptor" = 0 Picoseconds: "unknown: what building a descriptor takes is inside `post`";
    };
    let mut queues = tofu2_queues();
    for constant in &mut queues {
        if constant.name == "session_queues" {
            (constant.value, constant.note) = (0, "hardware: no session mode".into());
        } else if !constant.note.starts_with("assumed") {
            constant.note = "assumed as on FX100".into();
        }
    }
    [machine, queues].concat()
}

/// The control queues of Tofu2: their numbers and capabilities.
pub(super) fn tofu2_queues() -> Vec<Constant> {
    constants! {
        "system_queues" = 0 Count: "assumed: CQs of a TNI that programs don't reach";
        "queue_contexts" = 8 Count: "assumed as on TofuD: normal queues that share a CQ";
        "session_queues" = 12 Count: "CQs of a TNI that may be in session mode: any";
        "exclusive_queues" = 12 Count: "assumed: CQs of a TNI that one normal queue may have for itself: any";
        "queue_depth" = 65_536 Count: "assumed: most slots of a TOQ and entries of an MRQ";
        "fixed_tags" = 256 Count: "assumed as on TofuD: steering tags that programs choose";
        "automatic_tags" = 65_536 Count: "assumed: steering tags that are given automatically";
        "shared_tags" = 0 Count: "hardware: CQs have address spaces of their own; 1: one for all of a rank";
        "packet_gap" = 10_000 Picoseconds: "assumed: idle time per unit of a command's gap";
    }
}

/// Fugaku and PRIMEHPC FX1000, Tofu interconnect D.
pub(super) fn tofud() -> Vec<Constant> {
    constants! {
        "atomics" = 2 Count: "hardware: in the network interface (2)";
        "atomic_service" = 269_500 Picoseconds: "assumed as on FX100; not published for TofuD";
        "atomic_serial" = 4_700 PerTenThousand: "assumed as on FX100; not published for TofuD";
        "put_one_way" = 490_000 Picoseconds: "8-byte put to a neighbour; external: TofuD abstract";
        "wire_round_trip" = 360_000 Picoseconds: "assumed: what the node sides leave of two one-way latencies";
        "post" = 100_000 Picoseconds: "assumed share of node side";
        "send_engine" = 105_000 Picoseconds: "assumed share of node side";
        "send_gap" = 100_000 Picoseconds: "assumed as on FX100";
        "hop" = 80_000 Picoseconds: "external: a round trip grows by 0.15 to 0.17 us per hop on a unit of 12 nodes";
        "link_byte" = 147_059 FemtosecondsPerByte: "recalled: 6.8 GB/s per link and direction";
        "payload_byte" = 157_480 FemtosecondsPerByte: "recalled: 6.35 GB/s single put stream; 6.34 measured";
        "packet_payload" = 1_920 Bytes: "external: largest packet of the system library";
        "packet_overhead" = 136 Bytes: "external: 93 % link efficiency (TofuD abstract) and the single stream";
        "engines" = 6 Count: "hardware: TNIs per node";
        "queues_per_engine" = 12 Count: "hardware: CQs per TNI, one of them the system's";
        "barrier_gate" = 150_000 Picoseconds: "proposal as on FX100, not calibrated";
        "barrier_channels" = 16 Count:
            "TofuD, its system library: start/end gates of one TNI; the model has one unit a node";
        "barrier_gates" = 48 Count: "TofuD, its system library: all gates of one TNI; the model has one unit a node";
        "transmit_queue" = 2_048 Count: "TOQ slots, the system library's default";
        "receive_queue" = 2_048 Count: "assumed: MRQ slots for notices";
        "engine_room" = 2 Count: "assumed as on FX100";
        "queue_chain" = 0 Picoseconds: "unknown: not published for TofuD";
        "max_transfer" = 16_777_215 Bytes: "hardware: longest single transfer";
        "notice_bits" = 8 Bits: "hardware: width of a notice's data";
        "third_party_copy" = 0 Count:
            "hardware: one end of a put or get is the poster's memory; 1: what if neither need be";
        "block_puts" = 1 Count: "TofuD, its system library: a posting may put several blocks";
        "multicast" = 0 Picoseconds: "hardware: none (0); else from the crossbar that all pass to the members";
        "yield" = 50_000 Picoseconds: "assumed: one turn of a program's own polling loop";
        "node_memory" = 34_359_738_368 Bytes: "external: 32 GiB per node";
        "copy_threads" = 1 Count: "what a program decides: threads that share each copy of a rank";
        "software.bare" = 0 Picoseconds: "no software layer";
        "software.copy" = 50_000 FemtosecondsPerByte: "assumed: one thread copies 20 GB/s";
        "software.pack" = 62_500 FemtosecondsPerByte: "assumed: one thread packs or unpacks 16 GB/s in short runs";
        "software.descriptor" = 0 Picoseconds: "unknown: what building a descriptor takes is inside `post`";
        "system_queues" = 1 Count: "TofuD: 11 of a TNI's 12 CQs can be reached by programs";
        "queue_contexts" = 8 Count: "TofuD, its system library: normal queues that share a CQ";
        "session_queues" = 3 Count: "TofuD, its system library's default: session queues of a TNI";
        "exclusive_queues" = 7 Count: "TofuD, its system library's default: exclusive queues of a TNI";
        "queue_depth" = 65_536 Count: "assumed: most slots of a TOQ and entries of an MRQ";
        "fixed_tags" = 256 Count: "TofuD: reserved steering tags";
        "automatic_tags" = 65_536 Count: "assumed: steering tags that are given automatically";
        "shared_tags" = 0 Count: "assumed as on Tofu2: CQs have address spaces of their own";
        "packet_gap" = 10_000 Picoseconds: "assumed: idle time per unit of a command's gap";
    }
}
