//! The table of the K computer.
//!
//! Its network is FX10's, Tofu interconnect 1: no session mode, no strided puts, no atomics. Values
//! taken from elsewhere are *external*; everything else is *assumed*, and the paper with
//! measurements of this machine (XcalableMP's reflect) contains no figure from which a constant
//! could be set. Its orderings are checked over ranges of the assumed constants instead.
//!
//! # Layers of software
//! `mpi` is charged for each send and each receive, `mpi.setup` in addition for each that is not
//! persistent, `mpi.block` for each block of a derived datatype, at both ends. `fjmpi` is the
//! extended RDMA interface above a command of the network, as on FX100. `xmp.reflect` is the work
//! of XcalableMP's runtime for an array, `fork` the start and the end of threads in a loop,
//! `xmp.act` the table of asynchronous communications, for an array.

use super::{
    Constant, Unit,
    tables::{constants, tofu2_queues},
};
use std::borrow::Cow;

pub(super) fn k() -> Vec<Constant> {
    let machine = constants! {
        "atomics" = 1 Count: "external: none in Tofu1, so a service in software (1)";
        "atomic_service" = 222_656_250 Picoseconds: "assumed as on FX10";
        "atomic_serial" = 10_000 PerTenThousand: "assumed: one server per node";
        "put_one_way" = 910_000 Picoseconds: "external: 8-byte put to a neighbour over Tofu1 (TofuD abstract's comparison)";
        "wire_round_trip" = 520_000 Picoseconds: "assumed as on FX100";
        "post" = 200_000 Picoseconds: "assumed share of node side";
        "send_engine" = 225_000 Picoseconds: "assumed share of node side";
        "send_gap" = 100_000 Picoseconds: "assumed: shortest distance of two commands of one send engine";
        "hop" = 100_000 Picoseconds: "assumed: each hop after the first";
        "link_byte" = 200_000 FemtosecondsPerByte: "external: 5 GB/s per link and direction";
        "payload_byte" = 210_084 FemtosecondsPerByte: "external: 4.76 GB/s single put stream, as on FX10";
        "packet_payload" = 1_920 Bytes: "assumed as on FX100";
        "packet_overhead" = 101 Bytes: "external: 95 % link efficiency, with full packets (recalled)";
        "engines" = 4 Count: "external: TNIs per node";
        "queues_per_engine" = 12 Count: "assumed as on FX100";
        "transmit_queue" = 2_048 Count: "assumed as on FX100";
        "receive_queue" = 2_048 Count: "assumed as on FX100";
        "engine_room" = 2 Count: "assumed as on FX100";
        "queue_chain" = 0 Picoseconds: "external: no session mode in Tofu1, so no such puts";
        "max_transfer" = 16_777_215 Bytes: "assumed as on FX100: longest single transfer";
        "notice_bits" = 8 Bits: "assumed as on FX100: width of a notice's data";
        "third_party_copy" = 0 Count: "assumed as on FX100: one end of a put or get is the poster's memory";
        "block_puts" = 0 Count: "external: no strided puts in Tofu1";
        "multicast" = 0 Picoseconds: "assumed as on FX100: none (0)";
        "yield" = 50_000 Picoseconds: "assumed: one turn of a program's own polling loop";
        "node_memory" = 17_179_869_184 Bytes: "external: 16 GiB per node";
        "barrier_gate" = 150_000 Picoseconds: "assumed as on FX100: one gate of the barrier unit";
        "barrier_channels" = 8 Count: "assumed as on FX100";
        "barrier_gates" = 64 Count: "assumed as on FX100";
        "copy_threads" = 8 Count: "external: a rank's threads, one for each core of its node (XMP paper, section 6)";
        "software.bare" = 0 Picoseconds: "assumed: no software layer costs nothing";
        "software.copy" = 200_000 FemtosecondsPerByte: "assumed: one thread copies 5 GB/s";
        "software.pack" = 250_000 FemtosecondsPerByte: "assumed: one thread packs or unpacks 4 GB/s in short runs";
        "software.descriptor" = 0 Picoseconds: "assumed: what building a descriptor takes is inside `post`";
        "software.fjmpi" = 570_000 Picoseconds: "assumed as on FX100: extended RDMA library, for each command";
        "software.mpi" = 600_000 Picoseconds: "assumed: MPI's part of a send, and of a receive";
        "software.mpi.setup" = 300_000 Picoseconds: "assumed: a send or receive that is not persistent, besides";
        "software.mpi.block" = 50_000 Picoseconds: "assumed: one block of a derived datatype, at either end";
        "software.xmp.reflect" = 500_000 Picoseconds: "assumed: XcalableMP's runtime, for an array";
        "software.fork" = 500_000 Picoseconds: "assumed: threads start and end a loop, with the hardware's barrier";
        "software.xmp.act" = 5_000_000 Picoseconds: "assumed: the table of asynchronous communications, for an array";
    };
    let mut queues = tofu2_queues();
    for constant in &mut queues {
        if constant.name == "session_queues" {
            (constant.value, constant.note) = (0, "external: no session mode in Tofu1".into());
        } else if !constant.note.starts_with("assumed") {
            constant.note = "assumed as on FX100".into();
        }
    }
    [machine, queues].concat()
}

#[cfg(test)]
mod tests {
    use super::super::{Platform, SOFTWARE, Timing};

    #[test]
    fn each_constant_is_external_or_assumed_and_no_figure_sets_it() {
        let k = Platform::k();
        for constant in k.constants() {
            let marked = ["external", "assumed"].iter().any(|word| constant.note.starts_with(word));
            assert!(marked && constant.from.is_empty(), "{}: {}", constant.name, constant.note);
        }
        Timing::new(&k, 4).unwrap();
    }

    #[test]
    fn the_network_is_that_of_fx10() {
        let (k, fx10) = (Platform::k(), Platform::fx10());
        let hardware = |platform: &Platform| {
            let constants = platform.constants().iter().map(|constant| (constant.name, constant.value));
            constants.filter(|(name, _)| !name.starts_with(SOFTWARE)).collect::<Vec<_>>()
        };
        let differ = hardware(&k).into_iter().zip(hardware(&fx10)).filter(|(k, fx10)| k != fx10);
        assert_eq!(differ.map(|(k, _)| k.0).collect::<Vec<_>>(), ["node_memory", "copy_threads"]);
    }
}
