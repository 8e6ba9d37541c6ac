//! PRIMEHPC FX100, Tofu interconnect 2.

use super::{Constant, Unit::*, set};

pub(super) fn constants() -> Vec<Constant> {
    vec![
        set(
            "atomic_service",
            269_500,
            Picoseconds,
            &["L4"],
            "69 us / 128 ranks / 2 atomics: one atomic at the target's unit",
        ),
        set(
            "atomic_serial",
            4_700,
            PerTenThousand,
            &["L13"],
            "serial share of the atomic unit: 40 % less time with 4 engines",
        ),
        set(
            "put_one_way",
            710_000,
            Picoseconds,
            &[],
            "8-byte put to a neighbour; external: TofuD abstract (0.49 us is 31 % less)",
        ),
        set("wire_round_trip", 520_000, Picoseconds, &["A9"], "remote minus local, neighbouring nodes"),
        set(
            "post",
            150_000,
            Picoseconds,
            &[],
            "assumed share of node side: CPU writes the command; also polling a result",
        ),
        set("send_engine", 150_000, Picoseconds, &[], "assumed share of node side: latency of the send engine"),
        set("send_gap", 100_000, Picoseconds, &[], "assumed: shortest distance of two commands of one send engine"),
        set("hop", 100_000, Picoseconds, &[], "assumed: each hop after the first"),
        set("link_byte", 80_000, FemtosecondsPerByte, &[], "hardware: 12.5 GB/s per link and direction"),
        set("payload_byte", 100_000, FemtosecondsPerByte, &["R2"], "10 GB/s payload per engine"),
        set("packet_payload", 1_920, Bytes, &[], "largest packet's payload (TofuD's value, assumed here)"),
        set("packet_overhead", 144, Bytes, &[], "assumed: header and trailer of a packet"),
        set("engines", 4, Count, &[], "hardware: TNIs per node"),
        set("queues_per_engine", 12, Count, &[], "hardware: CQs per TNI"),
        set("transmit_queue", 2_048, Count, &[], "TOQ slots, the system library's default"),
        set("receive_queue", 2_048, Count, &[], "assumed: MRQ slots for notices"),
        set("engine_room", 2, Count, &[], "assumed: atomics that a receive engine holds, the one in service included"),
        set("max_transfer", 16_777_215, Bytes, &[], "hardware: longest single transfer"),
        set("notice_bits", 8, Bits, &[], "hardware: width of a notice's data"),
        set("yield", 50_000, Picoseconds, &[], "assumed: one turn of a program's own polling loop"),
        set("node_memory", 32 << 30, Bytes, &[], "hardware: 32 GiB per node"),
        set("software.bare", 0, Picoseconds, &[], "no software layer"),
        set(
            "software.fjmpi",
            570_000,
            Picoseconds,
            &["A9"],
            "extended RDMA library: 1.74 us local minus the modelled loopback",
        ),
        set("software.acp.thread", 1_430_000, Picoseconds, &["A1 local"], "ACP command queue and communication thread"),
        set(
            "software.acp.thread_safe",
            280_000,
            Picoseconds,
            &["A5 local", "A3 local"],
            "thread safety, hardware path",
        ),
        set(
            "software.acp.bypass",
            230_000,
            Picoseconds,
            &["A7 local", "A5 local"],
            "bypass of the communication thread",
        ),
    ]
}
