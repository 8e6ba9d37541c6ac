//! The table of the Hitachi SR8000, whose network is not Tofu.
//!
//! Its interface has one way to send: the CPU writes a *transfer control word* (TCW) and passes its
//! address to the interface. For a TCW that was created earlier, only the address is passed again;
//! that is a prepared operation, and a plain one rewrites the TCW first (`software.descriptor`).
//! There are no atomics, no gates and no control queues; there are hardware barriers by colour.
//!
//! # FMPL's table 1
//! Both sides spend 0.5 us on each call (`software.fmpl.init`). After it posts its header, a
//! receive is busy for 6.1 us: `post` and then `software.fmpl.header`. After it has the header, a
//! send is busy for 8.1 us: `software.descriptor` and `post` of the body, `post` of the flag after
//! it, whose TCW is reused, and then `software.fmpl.data`. These layers include the time in which
//! the interface reads the data to send, so they are charged after the post and before the handle
//! is awaited.
//!
//! The ping-pong in which a put with its TCW reused takes 4.7 us is a program like FMPL's, and is
//! taken to spend as long on each call (`software.fmpl.init`). Counted on top of 4.7 us instead,
//! these 0.5 us would make half a round trip 13.3 us and a receive's data wait 6.4 us, where the
//! paper reports 12.8 and 5.6 us.

use super::{Constant, Unit, tables::constants};
use std::borrow::Cow;

/// Hitachi SR8000: crossbars, remote DMA, hardware barrier.
pub(super) fn sr8000() -> Vec<Constant> {
    constants! {
        "atomics" = 0 Count: "hardware: none";
        "put_one_way" = 4_200_000 Picoseconds ["M6", "M7 init"]:
            "8-byte put whose TCW is reused, between nodes: 4.7 us minus `software.fmpl.init`";
        "wire_round_trip" = 1_000_000 Picoseconds: "assumed: through one crossbar and back, of 4.2 us each way";
        "post" = 500_000 Picoseconds: "assumed share of node side: CPU tells the interface where the TCW is";
        "send_engine" = 1_700_000 Picoseconds: "assumed: as long as the receive side";
        "send_gap" = 500_000 Picoseconds: "assumed: shortest distance of two transfers of one interface";
        "hop" = 200_000 Picoseconds: "assumed: the second crossbar";
        "crossbar_row" = 8 Count: "hardware: 8 nodes are one crossbar, 16 are a partition of 8 x 2 (section 6.2)";
        "barrier_colours" = 8 Count: "hardware: colours 0 to 7 (section 4.3)";
        "colour_barrier" = 1_000_000 Picoseconds:
            "assumed: a crossbar's way for each of the two dimensions; no time is published";
        "link_byte" = 1_000_000 FemtosecondsPerByte: "hardware: 1000 MB/s per link and direction";
        "payload_byte" = 1_000_000 FemtosecondsPerByte: "hardware: the link's rate";
        "packet_payload" = 1_920 Bytes: "unknown: as on FX100";
        "packet_overhead" = 0 Bytes: "assumed: the link's rate is that of payload";
        "engines" = 1 Count: "hardware: one network interface adapter (NIA) per node";
        "queues_per_engine" = 8 Count: "assumed: one for each of a node's 8 processors";
        "transmit_queue" = 2_048 Count: "unknown: as on FX100";
        "receive_queue" = 2_048 Count: "unknown: as on FX100";
        "max_transfer" = 16_777_216 Bytes: "assumed: the longest message that was measured";
        "notice_bits" = 32 Bits: "assumed: a flag that arrives behind its data";
        "third_party_copy" = 0 Count: "hardware: one end of a transfer is the sender's memory";
        "block_puts" = 0 Count: "assumed: a TCW describes one run of bytes";
        "multicast" = 500_000 Picoseconds:
            "assumed: one hop, from the crossbar that all broadcasts pass to the members (section 4.2)";
        "multicast_byte" = 1_138_000 FemtosecondsPerByte ["M16"]:
            "877 MB/s for 8 MB in pieces of 64 KiB, less what else the broadcast takes: why it is slower is not published";
        "ordered_puts" = 1 Count: "assumed: one interface and one way between two nodes, and FMPL relies on it";
        "yield" = 200_000 Picoseconds: "assumed: one turn of a program's own polling loop, at 250 MHz";
        "node_memory" = 8_589_934_592 Bytes: "recalled, unconfirmed: 8 GiB per node";
        "copy_threads" = 1 Count: "what a program decides: threads that share each copy of a rank";
        "software.bare" = 0 Picoseconds: "no software layer";
        "software.descriptor" = 2_600_000 Picoseconds ["M7 init", "M7 header", "M7 data"]:
            "rewriting a TCW: 8.1 - (0.5 + 5.0) us, which follows from table 1 if both ends do the same in turn";
        "software.fmpl.init" = 500_000 Picoseconds ["M7 init", "M8 init"]: "initial part of a send and of a receive";
        "software.fmpl.header" = 5_600_000 Picoseconds ["M8 header"]:
            "6.1 us for sending a header minus `post`; from the post on";
        "software.fmpl.data" = 4_500_000 Picoseconds ["M7 data", "M7 init", "M7 header"]:
            "8.1 us for sending data minus `software.descriptor` and `post` of body and flag; from the posts on";
        "software.blacs" = 2_900_000 Picoseconds ["M4", "M6", "M7 data"]:
            "BLACS on FMPL: 15.7 us minus 4.7 + 8.1 us of FMPL, a header's way and sending data";
        "software.fmpl.wait" = 2_100_000 Picoseconds ["M9 latency", "M6", "M7 data"]:
            "a wait apart from the call that posted the receive: 9.9 us minus init, a TCW rewritten, two posts and the way";
        "software.mpi" = 13_200_000 Picoseconds ["M2", "M6", "M7 data"]:
            "MPI's message handling: 20 us one way minus a put with its TCW rewritten (4.2 + 2.6 us)";
        "software.mpi.scan" = 616_833 Picoseconds ["M10 gap"]:
            "each posted receive that a new one is compared with: 370.1 us / 600, if that is per call";
        "software.mpi.match" = 1_543_000 Picoseconds ["M10 latency", "M2"]:
            "each posted receive that a message is compared with: (945.8 - 20) us / 600";
        "software.blacs_mpi" = 14_000_000 Picoseconds ["M5", "M2"]: "BLACS on MPI: derived datatypes, 34 - 20 us";
        "software.copy" = 132_000 FemtosecondsPerByte ["M13"]:
            "one of MPI's copies at both ends: half of 1/791 - 1/1000 us per byte";
        "software.pack" = 346_000 FemtosecondsPerByte ["M14"]:
            "packing for MPI, and as much for unpacking: half of 1/591 - 1/1000 us per byte";
    }
}
