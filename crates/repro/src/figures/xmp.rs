//! XcalableMP `reflect` on the K computer. The paper prints orderings only, no speed-up.

use super::{Bound, Figure, Paper, Published, Published::*, Status, Status::*};

const fn figure(
    id: &'static str,
    what: &'static str,
    published: Published,
    unit: &'static str,
    place: &'static str,
    status: Status,
) -> Figure {
    Figure::new(Paper::Xmp, id, what, published, unit, place, status)
}

const fn ordering(id: &'static str, what: &'static str, words: &'static str, place: &'static str) -> Figure {
    figure(id, what, Words(words), "", place, Ordering)
        .bound(Bound::Holds)
        .remark("To hold over a range of assumed compute, pack and barrier times: none is published.")
}

pub(super) const FIGURES: &[Figure] = &[
    figure("X1", "SCALE-LES grid and steps", Words("512 × 512 × 128, 500 steps"), "", "§6", Specified),
    figure("X2", "threads per node", Value(8.0), "", "§6", Specified).remark("Language environment K-1.2.0-13."),
    figure("X3", "largest run", Value(1024.0), "nodes", "§6, Figs. 8–10", Specified),
    figure("X4", "shadow widths", Words("(0,2,2), periodic in i and j"), "", "Fig. 7", Specified),
    figure("X5", "RDMA tags", Range(0.0, 14.0), "", "§5.1", Specified),
    ordering("X6", "pack against hand-written MPI", "about equal, above it at 1024 nodes", "§6, Fig. 8"),
    ordering("X7", "derived datatypes", "slower than MPI", "§6, Fig. 8"),
    ordering("X8", "asynchronous with overlap", "gains much at 1024 nodes; bookkeeping costs", "§6, Fig. 9"),
    ordering("X9", "RDMA with two barriers", "slower than hand-written RDMA and than pack", "§6, Fig. 10")
        .remark("The conclusion (§8) says slightly faster than pack; the evaluation (§6) is used."),
    figure("X10", "reflect of 1024 nodes, i direction, per block", Value(2064.0), "B", "from X1, X4", Derived)
        .remark("20 blocks in i without packing, 41,280 B contiguous in j, per variable and side."),
];
