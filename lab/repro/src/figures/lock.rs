//! The lock paper: MPI RMA lock on FX100 (Tofu2) and FX10 (Tofu1). Times are those of the slowest rank.

use super::{Bound, Case, Figure, Published::*, Status::*, figure};
use crate::Shape;
use tofu2_sim::virt::Arbiter;

/// The shapes whose groups do not form one line, with routers that take one input after another.
const WITHOUT_LINE: &[Case] = &[in_turn(Shape::OF_FX100[0]), in_turn(Shape::OF_FX100[1])];

const fn in_turn(shape: Shape) -> Case {
    Case { shape, arbiter: Arbiter::RoundRobin }
}

pub(super) const LOCK: &[Figure] = &[
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
    figure("L7-ppn8", "L4 scaled by 8, as the paper does", Value(0.552), "s", "§5.2", Derived)
        .bound(Bound::Relative(0.1)),
    figure("L7-ppn32", "L4 scaled by 32, as the paper does", Value(2.208), "s", "§5.2", Derived)
        .bound(Bound::Relative(0.1)),
    figure("L8", "first over last finisher", Value(0.1 / 2.2), "", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Factor(2.0))
        .remark("ppn 32. Printed as the range 0.1 to 2.2 s. The job's shape and the routers' arbiter are not given: one input after another here."),
    figure("L8-oldest", "the same, oldest packet first", Value(0.1 / 2.2), "", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Factor(2.0))
        .miss("If routers send the oldest packet first, no input waits longer than another, and all ranks finish together."),
    figure("L8-torus", "the same on a plain torus", Words("not stated"), "", "§5.2, Fig. 10", Own)
        .remark("What if the machine had three axes? No paper states it."),
    figure("L9", "near finish first (Spearman)", Words("fewer hops finish earlier"), "", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Above(0.9))
        .miss_in(
            WITHOUT_LINE,
            "The paper infers an ordering from two plots; the rank correlation of a node's distance and its ranks' mean \
             finishing time is our measure of it. On Tofu's six axes distances are short and subtrees of equal distance \
             differ in size, so the ordering is weaker than on a plain torus (L9-torus), except on one line of groups.",
        ),
    figure("L9-ranks", "the same over single ranks", Words("not stated"), "", "§5.2, Fig. 10", Own)
        .remark("No paper states it: ranks of one node share its distance, so their spread only blurs L9."),
    figure("L9-oldest", "L9, oldest packet first", Words("fewer hops finish earlier"), "", "§5.2, Fig. 10", Predicted)
        .bound(Bound::Above(0.9))
        .remark("All ranks finish almost together (L8-oldest), yet in the order of their distance."),
    figure("L9-torus", "L9 on a plain torus", Words("not stated"), "", "§5.2, Fig. 10", Own)
        .remark("What if the machine had three axes? No paper states it."),
    figure("L10", "reader pair, 663,552 ranks", Value(1.0), "s", "§5.2", Predicted)
        .bound(Bound::Relative(0.1))
        .miss(
            "The paper's data are linear at 0.51 to 0.54 µs per process, which extrapolates to 0.34 to 0.36 s; no \
             reading of them gives the printed \"about 1 second\". The model agrees with the data and not with the text.",
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
    figure("L15", "RDMA engines (TNIs) per node", Value(4.0), "", "§4.1, §5.2", Specified)
        .bound(Bound::Between(4.0, 4.0))
        .remark("Those of all control queues that a node lets a program open."),
    figure(
        "L16",
        "atomic operations of Tofu2",
        Words("compare-and-swap, fetch-and-store, -add, -or, -and; atomic against CPU and all engines"),
        "",
        "§4.1",
        Specified,
    )
    .bound(Bound::Holds)
    .remark("Each has its effect, and no add of other nodes' ranks, through all four engines, and of the home's CPU is lost."),
];
