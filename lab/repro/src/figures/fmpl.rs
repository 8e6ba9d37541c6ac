//! FMPL and BLACS on the Hitachi SR8000.

use super::{Bound, Figure, Published::*, Status::*, figure};

const fn ordering(id: &'static str, what: &'static str, words: &'static str, place: &'static str) -> Figure {
    figure(id, what, Words(words), "", place, Ordering).bound(Bound::Holds)
}

/// The bound of "about the same".
const ABOUT_THE_SAME: Bound = Bound::Between(0.75, 1.25);

const MEGABYTE: &str = "Whether a megabyte is 10^6 or 2^20 bytes is not said; the predictions do not depend on it.";

pub(super) const FMPL: &[Figure] = &[
    figure("M1", "FMPL one-way latency, 8 B", Value(12.8), "µs", "abstract, §6.1, §8", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M2", "MPI one-way latency, 8 B", Value(20.0), "µs", "abstract, §6.1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M3", "M1 below M2", Value(36.0), "%", "abstract", Derived).bound(Bound::Relative(0.1)),
    figure("M4", "BLACS-FMPL, 8 B", Value(15.7), "µs", "§6.1", Calibrated)
        .bound(Bound::Relative(0.01)).remark("Supports no prediction."),
    figure("M5", "BLACS on MPI, 8 B", Value(34.0), "µs", "§6.1", Calibrated)
        .bound(Bound::Relative(0.01)).remark("Supports no prediction."),
    figure("M6", "TCW-reuse send, one way", Value(4.7), "µs", "§6.1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M7-init", "send: init", Value(0.5), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M7-header", "send: header wait", Value(5.0), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M7-data", "send: data", Value(8.1), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.01))
        .remark("Table 1 sums to 13.6 (send) and 12.2 (receive); half their sum is 12.9, M1 is 12.8."),
    figure("M8-init", "receive: init", Value(0.5), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M8-header", "receive: header send", Value(6.1), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M8-data", "receive: data wait", Value(5.6), "µs", "table 1", Calibrated)
        .bound(Bound::Relative(0.1))
        .remark("No prediction: the constant of a descriptor was chosen with this figure in view."),
    figure("M9-gap", "600 posted receives, 4 B, FMPL: gap", Value(7.03), "µs", "table 2", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M9-latency", "600 posted receives, 4 B, FMPL: latency", Value(9.90), "µs", "table 2", Calibrated)
        .bound(Bound::Relative(0.01))
        .remark("2.0 µs above init and data path; table 1 does not explain it."),
    figure("M10-gap", "600 posted receives, 4 B, MPI: gap", Value(370.1), "µs", "table 2", Calibrated)
        .bound(Bound::Relative(0.01))
        .remark("Per call or cumulative: 0.62 or 1.23 µs per entry."),
    figure("M10-latency", "600 posted receives, 4 B, MPI: latency", Value(945.8), "µs", "table 2", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M11", "bandwidth at 16 MB, FMPL and BLACS-FMPL", Value(999.0), "MB/s", "§6.1, Fig. 7", Predicted)
        .bound(Bound::Relative(0.01))
        .remark(MEGABYTE),
    figure("M12", "bandwidth at 16 MB, MPI (rdma)", Value(997.0), "MB/s", "§6.1", Predicted)
        .bound(Bound::Relative(0.01))
        .remark(MEGABYTE),
    figure("M13", "bandwidth at 16 MB, MPI (nordma)", Value(791.0), "MB/s", "§6.1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M14", "bandwidth at 16 MB, BLACS on MPI (rdma)", Value(591.0), "MB/s", "§6.1", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("M15", "bandwidth at 16 MB, BLACS on MPI (nordma)", Value(522.0), "MB/s", "§6.1", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M16", "hardware broadcast, 16 nodes, 8 MB", Value(877.0), "MB/s", "abstract, §6.3, Fig. 10", Calibrated)
        .bound(Bound::Relative(0.01))
        .remark("Supports no prediction."),
    figure("M17", "M16 above MPI", Value(57.0), "%", "abstract, §6.3", Derived)
        .bound(Bound::Relative(0.1))
        .miss(
            "The paper does not describe how MPI broadcasts. Here a message is copied, multicast as a whole and copied, one \
             after the other, which is faster than the 559 MB/s that the paper implies.",
        ),
    figure("M18", "software broadcast, 16 nodes", Value(250.0), "MB/s", "§6.3", Predicted).bound(Bound::Relative(0.05)),
    ordering(
        "M19",
        "software barrier and broadcast",
        "grow as log p; one stage fewer for non-powers of two",
        "§6.2, §6.3, Figs. 8, 9",
    ),
    ordering("M20", "broadcast of 8 KB", "hardware always below software", "§6.3, Fig. 9"),
    figure("M21", "reduction of 8 KB, FMPL over MPI", Words("about half of the others' time"), "", "§6.4, Fig. 11", Ordering)
        .bound(Bound::Between(0.333, 0.667))
        .miss(
            "Against MPI alone, the ratio furthest from a half is that of 3 nodes: the headers of a member's two children \
             follow one another, while MPI's two messages arrive together. It is above two thirds at 2, 3, 5, 6 and 7 nodes.",
        ),
    ordering(
        "M22",
        "barrier",
        "hardware below software everywhere; MPI above FMPL(SW) at 9 to 15 nodes",
        "§6.2, Fig. 8",
    ),
    figure(
        "M20-between",
        "broadcast of 8 KB at 9 to 15 nodes, FMPL over FMPL (SW)",
        Words("no hardware there (§4.2), but it always wins (§6.3)"),
        "",
        "§4.2, §6.3, Fig. 9",
        Ordering,
    )
    .bound(Bound::Below(1.0))
    .miss(
        "The paper contradicts itself: §4.2 rules the hardware out at 9 to 15 nodes, and §6.3 says that it always wins. Ours \
         is software there.",
    ),
    figure(
        "M22-between",
        "barrier at 9 to 15 nodes, FMPL over FMPL (SW)",
        Words("in software there (§4.3), but always faster (§6.2)"),
        "",
        "§4.3, §6.2, Fig. 8",
        Ordering,
    )
    .bound(Bound::Below(1.0))
    .remark(
        "How its barrier combines broadcasts and puts is not published, and no broadcast reaches all of these nodes (§4.2). Here \
         puts go up the tree, and a broadcast in each row of nodes down.",
    ),
    figure("M23", "MPI tag upper bound, at least", Value(32767.0), "", "§2.6", Specified)
        .not_modelled("MPI is a software term here: its messages have no tags."),
    figure("M24", "size with FMPL's largest gain over MPI", Words("a few KB to a few 100 KB"), "B", "§8, Fig. 7", Ordering)
        .bound(Bound::Between(2048.0, 524_288.0))
        .remark("The gain is the difference of their bandwidths."),
    ordering("M25", "M16, at 8 MB against 4 MB", "still rising", "§6.3, Fig. 10"),
    figure("M26", "M16, BLACS-FMPL over FMPL", Words("about the same"), "", "§6.3, Fig. 10", Ordering)
        .bound(ABOUT_THE_SAME),
    figure("M27", "broadcast of 8 KB, MPI nordma over rdma", Words("about the same"), "", "§6.3", Ordering)
        .bound(ABOUT_THE_SAME)
        .remark("At the number of nodes where they differ most."),
    figure("M28", "barrier, BLACS-FMPL over FMPL", Words("about the same"), "", "§6.2, Fig. 8", Ordering)
        .bound(ABOUT_THE_SAME)
        .remark("At the number of nodes where they differ most."),
    figure("M29", "MPI's first message", Words("slower than later ones (§6.1 measures these)"), "", "§6.1", Ordering)
        .not_modelled("MPI asks for the right to send with the first message, at a cost that is not published; ours has it from the start."),
];
