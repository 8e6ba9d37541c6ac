//! MPI RMA lock on FX100 (Tofu2) and FX10 (Tofu1). Times are those of the slowest rank.

use super::{Bound, Figure, Paper, Published, Published::*, Status, Status::*};

const fn figure(
    id: &'static str,
    what: &'static str,
    published: Published,
    unit: &'static str,
    place: &'static str,
    status: Status,
) -> Figure {
    Figure::new(Paper::Lock, id, what, published, unit, place, status)
}

pub(super) const FIGURES: &[Figure] = &[
    figure("L1", "reader pair, 4 ranks", Value(2.3), "µs", "§5.2, Fig. 8", Predicted)
        .bound(Bound::Relative(0.1))
        .remark("The four ranks must share the home node: over the wire it would be 2.8 µs or more."),
    figure("L2", "reader pair, 256 ranks", Value(130.0), "µs", "§5.2", Predicted)
        .bound(Bound::Relative(0.1))
        .remark("±6 % is the paper's own reproducibility (see L5)."),
    figure("L3", "log-log slope, 4–4096 ranks", Value(1.0), "", "§5.2, Fig. 8", Predicted)
        .bound(Bound::Between(0.97, 1.03))
        .remark("Printed as \"proportional to the number of processes\"."),
    figure("L4", "1000 pairs, 128 × 1 ranks", Value(0.069), "s", "§5.2, Fig. 10", Calibrated)
        .bound(Bound::Relative(0.05))
        .remark("Sets the service time of one atomic: 69 µs / 128 / 2."),
    figure("L5", "1000 pairs, 128 × 8 ranks", Value(0.52), "s", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Relative(0.1))
        .remark("6 % below the paper's own scaling of L4 (0.552 s), while ppn 32 agrees with it to 0.4 %."),
    figure("L6", "1000 pairs, 128 × 32 ranks", Value(2.2), "s", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Relative(0.1)),
    figure("L7-ppn8", "the paper's scaling of L4 by 8", Value(0.552), "s", "§5.2", Derived),
    figure("L7-ppn32", "the paper's scaling of L4 by 32", Value(2.208), "s", "§5.2", Derived),
    figure("L8", "first over last finisher", Value(0.1 / 2.2), "", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Factor(2.0))
        .remark("ppn 32. Printed as the range 0.1 to 2.2 s; the job's shape on the torus is not given."),
    figure(
        "L9",
        "near finish first (Spearman)",
        Words("fewer hops finish earlier"),
        "",
        "§5.2, Fig. 10 lower right",
        Predicted,
    )
    .bound(Bound::Above(0.9))
    .remark(
        "The paper infers an ordering from two plots; the rank correlation of a node's distance and its ranks' mean \
         finishing time is our measure of it. On six axes it is lower: see L9-six under --shapes all.",
    ),
    figure("L9-ranks", "the same over single ranks", Words("fewer hops finish earlier"), "", "§5.2, Fig. 10", Contradicted)
        .remark("No target: ranks of one node share its distance, so their spread only blurs L9."),
    figure("L9-six", "near finish first, six axes", Words("fewer hops finish earlier"), "", "§5.2, Fig. 10", Contradicted)
        .remark(
            "No target: on Tofu's own six axes distances are short and subtrees of equal distance differ in size, so that \
             the ordering is weaker. The paper does not give its job's shape.",
        ),
    figure("L10", "reader pair, 663,552 ranks", Value(1.0), "s", "§5.2", Contradicted).remark(
        "The paper's data are linear at 0.51 to 0.54 µs per process, which extrapolates to 0.34 to 0.36 s; \
         no reading of them gives the printed \"about 1 second\". Our own value stands beside it and is held to no bound.",
    ),
    figure("L11", "FX10: 1000 pairs, 256 ranks", Value(114.0), "s", "§5.2, Fig. 9", Calibrated)
        .bound(Bound::Relative(0.05))
        .remark("24 nodes, ppn 16. A total over 1000 pairs, MPI layer included; sets the software lock's service time."),
    figure("L12", "FX10 over FX100, per pair", Value(876.923), "", "§5.2", Derived)
        .bound(Bound::Between(500.0, 1500.0))
        .remark("Printed as \"about 1000 times\"; 114 s is a total of 1000 pairs, 130 µs is one pair: 877."),
    figure("L13", "time saved by 4 TNIs", Value(40.0), "%", "§5.2, Figs. 11, 12", Calibrated)
        .bound(Bound::Between(28.0, 44.0))
        .remark("\"About 40 % better\" is undefined: 40 % less time, or 40 % more throughput, which is 29 % less time. \
         The service time is set to 40 % less; the slowest of 32 ranks also waits for its unloaded round trip, which stays."),
    figure("L14", "atomics per reader pair", Value(2.0), "", "§4.2, Figs. 6, 7", Specified)
        .bound(Bound::Between(2.0, 2.0)),
    figure("L15", "RDMA engines (TNIs) per node", Value(4.0), "", "§4.1, §5.2", Specified),
    figure(
        "L16",
        "atomic operations of Tofu2",
        Words("compare-and-swap, fetch-and-store, -add, -or, -and; atomic against CPU and all engines"),
        "",
        "§4.1",
        Specified,
    ),
];
