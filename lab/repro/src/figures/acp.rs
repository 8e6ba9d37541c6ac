//! The ACP base layer on FX100. Workload of table 3: 1000 times an atomic add of 4 bytes and its
//! completion.
//!
//! Conditions: *hw* hardware atomic, *desc* descriptor optimisation, *ts* thread-safe, *by*
//! communication thread bypassed.

use super::{
    Bound, Figure,
    Published::*,
    Status::{self, *},
    figure,
};

const fn cell(id: &'static str, what: &'static str, micros: f64, status: Status) -> Figure {
    figure(id, what, Value(micros), "µs", "table 3", status)
}

/// Returns a figure that sets a constant's value, and that the model must reproduce.
const fn calibrated(id: &'static str, what: &'static str, micros: f64) -> Figure {
    cell(id, what, micros, Calibrated).bound(Bound::Relative(0.01))
}

const fn predicted(id: &'static str, what: &'static str, micros: f64) -> Figure {
    cell(id, what, micros, Predicted).bound(Bound::Relative(0.1))
}

const NOT_ADDITIVE: &str =
    "Table 3 is not additive (thread safety costs 0.04 to 0.74 µs by column): an additive model carries about 6 %.";

pub(super) const ACP: &[Figure] = &[
    predicted("A1-remote", "atomic add, remote", 8.57).bound(Bound::Relative(0.15)).remark(
        "Comes out of the delegation that runs here. That serving costs what a command does is assumed; if it cost nothing, it would be 7.88 µs.",
    ),
    calibrated("A1-local", "atomic add, local", 1.43),
    predicted("A2-remote", "atomic add, ts, remote", 8.61).miss(
        "The paper's thread safety costs 0.04 µs here and 0.74 µs in the local cell, which sets the constant. The model \
         charges the constant in both, where the code passes it.",
    ),
    calibrated("A2-local", "atomic add, ts, local", 2.17).remark("Supports no prediction."),
    predicted("A3-remote", "atomic add, hw, remote", 3.91),
    calibrated("A3-local", "atomic add, hw, local", 3.36),
    predicted("A4-remote", "atomic add, hw desc, remote", 3.68),
    calibrated("A4-local", "atomic add, hw desc, local", 3.23),
    predicted("A5-remote", "atomic add, hw ts, remote", 4.44).remark(NOT_ADDITIVE),
    calibrated("A5-local", "atomic add, hw ts, local", 3.64),
    predicted("A6-remote", "atomic add, hw desc ts, remote", 4.31).remark(NOT_ADDITIVE),
    predicted("A6-local", "atomic add, hw desc ts, local", 3.51),
    predicted("A7-remote", "atomic add, hw ts by, remote", 4.39),
    calibrated("A7-local", "atomic add, hw ts by, local", 3.87),
    predicted("A8-remote", "atomic add, hw desc ts by, remote", 4.26),
    predicted("A8-local", "atomic add, hw desc ts by, local", 3.77),
    figure("A9-remote", "MPI extended RDMA atomic, remote", Value(2.26), "µs", "§5", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("A9-local", "MPI extended RDMA atomic, local", Value(1.74), "µs", "§5", Calibrated)
        .bound(Bound::Relative(0.01)),
    figure("A10-safe", "best remote, thread-safe", Value(4.26), "µs", "abstract, §6", Derived)
        .bound(Bound::Relative(0.1)),
    figure("A10-condition", "condition of the best remote, thread-safe", Value(8.0), "", "abstract, §6", Derived)
        .bound(Bound::Between(8.0, 8.0))
        .miss(
            "Ours is condition 6, without the bypass: the model's bypass costs 0.23 µs and gains nothing (A13).",
        ),
    figure("A10-unsafe", "best remote, not thread-safe", Value(3.68), "µs", "abstract, §6", Derived)
        .bound(Bound::Relative(0.1)),
    figure("A11-safe", "best local, thread-safe", Value(2.17), "µs", "§6", Derived)
        .bound(Bound::Relative(0.1)),
    figure("A11-unsafe", "best local, not thread-safe", Value(1.43), "µs", "§6", Derived)
        .bound(Bound::Relative(0.1)),
    figure("A12", "gain of the descriptor optimisation", Value(0.1), "µs", "§5", Derived)
        .bound(Bound::Relative(0.1))
        .miss(
            "Printed as \"about 0.1\". The constant is the local cell's difference, 0.13 µs; table 3 shows 0.10 to 0.23 in \
             its six cells.",
        ),
    figure("A13", "gain of the bypass, remote", Value(0.05), "µs", "§5", Derived)
        .bound(Bound::Relative(0.1))
        .miss(
            "The bypass costs 0.23 and 0.26 µs in the local cells, which set the constant, and the paper looks for the \
             reason. The model charges it after completion, so it hides nothing; the cells A7 and A8 are within their bounds.",
        ),
    figure("A14", "A4 remote over extended RDMA remote", Value(1.42), "µs", "§5", Predicted)
        .bound(Bound::Relative(0.1))
        .remark("From A1 local; uses no remote figure of ACP."),
    figure("A15", "atomic add by the CPU", Words("tens of ns"), "", "§5", Specified)
        .not_modelled("An access of the CPU to its node's memory takes no virtual time; A1 local is the cost of queue and helper."),
    figure("A16", "states of a command-queue entry", Value(7.0), "", "table 1", Specified)
        .bound(Bound::Between(7.0, 7.0))
        .remark("The states that entries entered in a job with copies, orders and a delegated copy."),
];
