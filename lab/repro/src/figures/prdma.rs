//! Persistent neighbour exchange in session mode on FX100: 36 nodes, neighbours on adjacent ones.

use super::{Bound, Figure, Published::*, Status::*, figure};

pub(super) const PRDMA: &[Figure] = &[
    figure("R1", "FAST, 1-D 3-point exchange, 16 KiB", Value(5.0), "µs", "abstract, §1, §5.2, Fig. 9", Calibrated)
        .bound(Bound::Relative(0.02))
        .remark("Sets what a start costs above the modelled exchange."),
    figure("R2", "FAST slope, 0 to 64 KiB", Value(10.0), "GB/s", "§5.2", Calibrated)
        .bound(Bound::Relative(0.02))
        .remark("Sets the payload rate of an engine."),
    figure("R3-low", "MRC over FAST, lowest", Value(1.2), "", "§5.2, Fig. 10", Calibrated)
        .bound(Bound::Relative(0.02))
        .remark("Sets what a queue costs that releases its data by a put to itself."),
    figure("R3-high", "MRC over FAST, highest", Value(1.8), "", "§5.2, Fig. 10", Predicted).bound(Bound::Relative(0.1)),
    figure("R4", "MRC over FAST near 16 KiB", Value(1.5), "", "§1, §5.2, §6", Predicted).bound(Bound::Relative(0.1)),
    figure("R5", "MRC over FAST, per byte", Value(2.0), "", "§5.2", Predicted)
        .bound(Bound::Relative(0.1))
        .remark("\"About 2\" and \"1.2 to 1.8\" are in neighbouring sentences; 2 is the asymptote, so ours is the ratio of the slopes."),
    figure("R7-links", "links per router", Value(10.0), "", "§4.1", Specified)
        .bound(Bound::Between(10.0, 10.0))
        .remark("Nodes at a distance of one hop from a node of 3×3×3 groups, of which Y is no ring."),
    figure("R7-rate", "rate per link and direction", Value(12.5), "GB/s", "§4.1", Specified)
        .bound(Bound::Relative(0.02))
        .remark("Bytes of packets, headers included, that four engines send over one link, per time that twice as many take longer."),
    figure("R8", "transfers at once, each way", Value(4.0), "", "§4.1", Specified)
        .bound(Bound::Between(4.0, 4.0))
        .remark("4 TNIs: so many sends and receives with different neighbours take as long as one of each."),
    figure("R9", "control queues per TNI", Value(12.0), "", "§4.1, §4.4.1", Specified)
        .bound(Bound::Between(12.0, 12.0))
        .remark("Those that a program could open, over the engines that they belong to."),
    figure("R10", "control queues per rank, two ranks per node", Value(24.0), "", "§4.4.1", Specified)
        .bound(Bound::Between(24.0, 24.0))
        .remark("Both ranks of a node open queues in turn until there are none left."),
    figure("R10-groups", "memory groups (CMG) per node", Value(2.0), "", "§4.4.1", Specified)
        .not_modelled("Memory groups are the paper's reason for two ranks per node (R10); a node's memory has no parts here, and the paper prints no time that depends on them. Exchanges with two ranks per node: --what-if."),
    figure(
        "R11",
        "session mode",
        Words("the read pointer never passes the scheduling pointer; an arriving put's SPS advances it"),
        "",
        "§4.1",
        Specified,
    )
    .bound(Bound::Holds)
    .remark("In the timeline of an MRC exchange, no command starts before the put that releases its slot has arrived."),
    figure("R12", "FAST, largest deviation from a line", Words("linear in the size"), "", "§5.2, Fig. 9", Ordering)
        .bound(Bound::Below(0.1)),
];
