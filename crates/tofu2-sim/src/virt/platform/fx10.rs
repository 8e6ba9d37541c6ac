//! PRIMEHPC FX10 and K computer, Tofu interconnect 1.

use super::{Constant, Unit::*, set};

pub(super) fn constants() -> Vec<Constant> {
    vec![
        set(
            "atomic_service",
            222_656_250,
            Picoseconds,
            &["L11"],
            "no atomics in hardware: 114 s / 1000 pairs / 256 ranks / 2 of the software lock service",
        ),
        set("atomic_serial", 10_000, PerTenThousand, &[], "assumed: one server per node"),
        set(
            "put_one_way",
            910_000,
            Picoseconds,
            &[],
            "8-byte put to a neighbour; external: TofuD abstract's comparison",
        ),
        set("wire_round_trip", 520_000, Picoseconds, &[], "assumed as on FX100"),
        set("post", 200_000, Picoseconds, &[], "assumed share of node side"),
        set("send_engine", 225_000, Picoseconds, &[], "assumed share of node side"),
        set("send_gap", 100_000, Picoseconds, &[], "assumed: shortest distance of two commands of one send engine"),
        set("hop", 100_000, Picoseconds, &[], "assumed: each hop after the first"),
        set("link_byte", 200_000, FemtosecondsPerByte, &[], "external: 5 GB/s per link and direction"),
        set("payload_byte", 210_084, FemtosecondsPerByte, &[], "external: 4.76 GB/s single put stream"),
        set("packet_payload", 1_920, Bytes, &[], "assumed as on FX100"),
        set("packet_overhead", 101, Bytes, &[], "recalled: 95 % link efficiency, with full packets"),
        set("engines", 4, Count, &[], "hardware: TNIs per node"),
        set("queues_per_engine", 12, Count, &[], "assumed as on FX100"),
        set("transmit_queue", 2_048, Count, &[], "assumed as on FX100"),
        set("receive_queue", 2_048, Count, &[], "assumed as on FX100"),
        set("engine_room", 2, Count, &[], "assumed as on FX100"),
        set("max_transfer", 16_777_215, Bytes, &[], "hardware: longest single transfer"),
        set("notice_bits", 8, Bits, &[], "hardware: width of a notice's data"),
        set("yield", 50_000, Picoseconds, &[], "assumed: one turn of a program's own polling loop"),
        set("node_memory", 32 << 30, Bytes, &[], "external: 32 GiB per node"),
        set("software.bare", 0, Picoseconds, &[], "no software layer"),
    ]
}
