//! Fugaku and PRIMEHPC FX1000, Tofu interconnect D. For TofuD itself: none of these values is used for Tofu2.

use super::{Constant, Unit::*, set};

pub(super) fn constants() -> Vec<Constant> {
    vec![
        set("atomic_service", 269_500, Picoseconds, &[], "assumed as on FX100; not published for TofuD"),
        set("atomic_serial", 4_700, PerTenThousand, &[], "assumed as on FX100; not published for TofuD"),
        set("put_one_way", 490_000, Picoseconds, &[], "8-byte put to a neighbour; external: TofuD abstract"),
        set(
            "wire_round_trip",
            360_000,
            Picoseconds,
            &[],
            "assumed: what the node sides leave of two one-way latencies",
        ),
        set("post", 100_000, Picoseconds, &[], "assumed share of node side"),
        set("send_engine", 105_000, Picoseconds, &[], "assumed share of node side"),
        set("send_gap", 100_000, Picoseconds, &[], "assumed as on FX100"),
        set(
            "hop",
            80_000,
            Picoseconds,
            &[],
            "external: a round trip grows by 0.15 to 0.17 us per hop on a unit of 12 nodes",
        ),
        set("link_byte", 147_059, FemtosecondsPerByte, &[], "recalled: 6.8 GB/s per link and direction"),
        set("payload_byte", 157_480, FemtosecondsPerByte, &[], "recalled: 6.35 GB/s single put stream; 6.34 measured"),
        set("packet_payload", 1_920, Bytes, &[], "external: largest packet of the system library"),
        set(
            "packet_overhead",
            136,
            Bytes,
            &[],
            "external: 93 % link efficiency (TofuD abstract) and the single stream",
        ),
        set("engines", 6, Count, &[], "hardware: TNIs per node"),
        set("queues_per_engine", 12, Count, &[], "hardware: CQs per TNI, one of them the system's"),
        set("transmit_queue", 2_048, Count, &[], "TOQ slots, the system library's default"),
        set("receive_queue", 2_048, Count, &[], "assumed: MRQ slots for notices"),
        set("engine_room", 2, Count, &[], "assumed as on FX100"),
        set("max_transfer", 16_777_215, Bytes, &[], "hardware: longest single transfer"),
        set("notice_bits", 8, Bits, &[], "hardware: width of a notice's data"),
        set("yield", 50_000, Picoseconds, &[], "assumed: one turn of a program's own polling loop"),
        set("node_memory", 32 << 30, Bytes, &[], "external: 32 GiB per node"),
        set("software.bare", 0, Picoseconds, &[], "no software layer"),
    ]
}
