//! XcalableMP `reflect` on the K computer. The paper prints only orderings, no speed-ups.

use super::{Bound, Figure, Published::*, Status::*, figure};

const fn fact(id: &'static str, what: &'static str, words: &'static str, place: &'static str) -> Figure {
    figure(id, what, Words(words), "", place, Specified).bound(Bound::Holds)
}

const fn reflect_ordering(id: &'static str, what: &'static str, words: &'static str, place: &'static str) -> Figure {
    figure(id, what, Words(words), "", place, Ordering)
}

const fn holds(figure: Figure) -> Figure {
    figure.bound(Bound::Holds)
}

const fn exactly(id: &'static str, what: &'static str, value: f64, unit: &'static str) -> Figure {
    figure(id, what, Value(value), unit, "from X1, X4", Derived).bound(Bound::Between(value, value))
}

pub(super) const XMP: &[Figure] = &[
    fact("X4", "shadow widths", "(0,2,2), periodic in i and j", "Fig. 7"),
    fact("X5", "RDMA tags", "0 to 14", "§5.1")
        .remark("The ids under which asynchronous reflects complete with the limits of K's interface; others are refused."),
    holds(reflect_ordering("X6", "pack against hand-written MPI", "about equal, above it at 1024 nodes", "§6, Fig. 8"))
        .remark("With the constants as assumed; where it flips is listed below."),
    holds(reflect_ordering("X7", "derived datatypes, gathered", "slower than MPI", "§6, Fig. 8")).miss(
        "With the constants as assumed, the parts that one thread has gathered leave while it gathers more, and faces in j \
         need no gathering. The ordering holds where a thread packs less than 3.3 GB/s.",
    ),
    holds(reflect_ordering("X7-puts", "derived datatypes, put block by block", "slower than MPI", "§6, Fig. 8")).miss(
        "With the constants as assumed, a block costs too little: the ordering holds where it takes the message layer, or \
         the queue to the network, 0.8 µs.",
    ),
    holds(reflect_ordering("X7-flat", "derived datatypes, flat-parallel", "faster than MPI and than pack", "§6")),
    holds(reflect_ordering(
        "X8",
        "asynchronous with overlap, gathered",
        "gains much at 1024 nodes; bookkeeping costs",
        "§6, Fig. 9",
    ))
    .miss(
        "The program's own thread gathers, so gathering is not hidden. X7 requires that this thread is busy, and X8 that it \
         is free.",
    ),
    holds(reflect_ordering(
        "X8-puts",
        "asynchronous with overlap, put block by block",
        "gains much at 1024 nodes; bookkeeping costs",
        "§6, Fig. 9",
    ))
    .miss("Much is taken as 10 % of the time. With the constants as assumed the gain is smaller; it reaches 10 % where the network takes 0.85 µs a block."),
    holds(reflect_ordering(
        "X9",
        "RDMA with two barriers",
        "slower than hand-written RDMA and than pack",
        "§6, Fig. 10",
    ))
    .remark("The conclusion (§8) says slightly faster than pack; the evaluation (§6) is used. Barriers of puts."),
    holds(reflect_ordering(
        "X9-unit",
        "RDMA with two barriers of the barrier unit",
        "slower than hand-written RDMA and than pack",
        "§6, Fig. 10",
    )),
    exactly("X10", "reflect of 1024 nodes, i direction, per block", 2064.0, "B"),
    exactly("X10-blocks", "the same, blocks", 20.0, ""),
    exactly("X10-j", "the same, j direction, in one piece", 41_280.0, "B").remark(
        "Per variable and side, shadows of the other dimension included. The simulated reflects leave these out: 16 \
         blocks in i, 2 in j.",
    ),
    figure("X11", "pack on an ordinary Linux cluster", Words("less effective than on K"), "", "§6", Ordering)
        .not_modelled("The paper names K's barrier of threads as the reason, and no cluster; no constant of one is published."),
];
