//! FMPL and BLACS, Hitachi SR8000.

use super::{Bound, Figure, Paper, Published, Published::*, Status, Status::*};

const fn figure(
    id: &'static str,
    what: &'static str,
    published: Published,
    unit: &'static str,
    place: &'static str,
    status: Status,
) -> Figure {
    Figure::new(Paper::Fmpl, id, what, published, unit, place, status)
}

const fn ordering(id: &'static str, what: &'static str, words: &'static str, place: &'static str) -> Figure {
    figure(id, what, Words(words), "", place, Ordering).bound(Bound::Holds)
}

const MEGABYTE: &str = "Whether a megabyte is 10^6 or 2^20 bytes is not said; the predictions do not depend on it.";

pub(super) const FIGURES: &[Figure] = &[
    figure("M1", "FMPL one-way latency, 8 B", Value(12.8), "µs", "abstract, §6.1, §8", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M2", "MPI one-way latency, 8 B", Value(20.0), "µs", "abstract, §6.1", Calibrated),
    figure("M3", "M1 below M2", Value(36.0), "%", "abstract", Derived),
    figure("M4", "BLACS-FMPL, 8 B", Value(15.7), "µs", "§6.1", Calibrated).remark("Supports no prediction."),
    figure("M5", "BLACS on MPI, 8 B", Value(34.0), "µs", "§6.1", Calibrated).remark("Supports no prediction."),
    figure("M6", "TCW-reuse send, one way", Value(4.7), "µs", "§6.1", Calibrated),
    figure("M7-init", "send: init", Value(0.5), "µs", "table 1", Calibrated),
    figure("M7-header", "send: header wait", Value(5.0), "µs", "table 1", Calibrated),
    figure("M7-data", "send: data", Value(8.1), "µs", "table 1", Calibrated)
        .remark("Table 1 sums to 13.6 (send) and 12.2 (receive); half their sum is 12.9, M1 is 12.8."),
    figure("M8-init", "receive: init", Value(0.5), "µs", "table 1", Calibrated),
    figure("M8-header", "receive: header send", Value(6.1), "µs", "table 1", Calibrated),
    figure("M8-data", "receive: data wait", Value(5.6), "µs", "table 1", Predicted).bound(Bound::Relative(0.1)),
    figure("M9-gap", "600 posted receives, 4 B, FMPL: gap", Value(7.03), "µs", "table 2", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M9-latency", "600 posted receives, 4 B, FMPL: latency", Value(9.90), "µs", "table 2", Calibrated)
        .remark("2.0 µs above init and data path; table 1 does not explain it."),
    figure("M10-gap", "600 posted receives, 4 B, MPI: gap", Value(370.1), "µs", "table 2", Calibrated)
        .remark("Per call or cumulative: 0.62 or 1.23 µs per entry."),
    figure("M10-latency", "600 posted receives, 4 B, MPI: latency", Value(945.8), "µs", "table 2", Calibrated),
    figure("M11", "bandwidth at 16 MB, FMPL and BLACS-FMPL", Value(999.0), "MB/s", "§6.1, Fig. 7", Predicted)
        .bound(Bound::Relative(0.01))
        .remark(MEGABYTE),
    figure("M12", "bandwidth at 16 MB, MPI (rdma)", Value(997.0), "MB/s", "§6.1", Predicted)
        .bound(Bound::Relative(0.01))
        .remark(MEGABYTE),
    figure("M13", "bandwidth at 16 MB, MPI (nordma)", Value(791.0), "MB/s", "§6.1", Calibrated),
    figure("M14", "bandwidth at 16 MB, BLACS on MPI (rdma)", Value(591.0), "MB/s", "§6.1", Calibrated),
    figure("M15", "bandwidth at 16 MB, BLACS on MPI (nordma)", Value(522.0), "MB/s", "§6.1", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("M16", "hardware broadcast, 16 nodes, 8 MB", Value(877.0), "MB/s", "abstract, §6.3, Fig. 10", Calibrated)
        .remark("Supports no prediction."),
    figure("M17", "M16 above MPI", Value(57.0), "%", "abstract, §6.3", Derived),
    figure("M18", "software broadcast, 16 nodes", Value(250.0), "MB/s", "§6.3", Predicted).bound(Bound::Relative(0.05)),
    ordering(
        "M19",
        "software barrier and broadcast",
        "grow as log p; one stage fewer for non-powers of two",
        "§6.2, §6.3, Figs. 8, 9",
    ),
    ordering("M20", "broadcast of 8 KB", "hardware always below software", "§6.3, Fig. 9"),
    ordering("M21", "reduction of 8 KB", "about half of the others' time", "§6.4, Fig. 11"),
    ordering(
        "M22",
        "barrier",
        "hardware below software everywhere; MPI above FMPL(SW) at 9 to 15 nodes",
        "§6.2, Fig. 8",
    ),
    figure("M23", "MPI tag upper bound, at least", Value(32767.0), "", "§2.6", Specified),
];
