//! What is explored.

use super::member::{
    Call::{self, *},
    Case,
};
use rdma_fabric::PutOrder;

type Edges = &'static [&'static [usize]];

pub(crate) const LOOP: Edges = &[&[0]];
pub(crate) const PAIR: Edges = &[&[1], &[0]];
const TWICE: Edges = &[&[1, 1], &[0, 0]];
const TWICE_ONE_WAY: Edges = &[&[1, 1], &[]];
pub(crate) const ONE_WAY: Edges = &[&[1], &[]];
const FAN_OUT: Edges = &[&[1, 2], &[], &[]];
const FAN_IN: Edges = &[&[2], &[2], &[]];
pub(crate) const CIRCLE: Edges = &[&[1], &[2], &[0]];
const LINE: Edges = &[&[1], &[0, 2], &[1]];
const RING: Edges = &[&[1, 2], &[2, 0], &[0, 1]];

const WEAK: PutOrder = PutOrder::None;
const STRONG: PutOrder = PutOrder::SameTarget;

pub(crate) const fn case(name: &'static str, edges: Edges, iterations: u64, order: PutOrder) -> Case {
    Case { name, edges, call: Whole, words: 1, iterations, looks: false, order, slow: false, at_least: 0, quick: true }
}

pub(crate) const fn slow(case: Case) -> Case {
    Case { slow: true, ..case }
}

pub(crate) const fn called(case: Case, call: Call) -> Case {
    Case { call, ..case }
}

const fn least(at_least: u64, case: Case) -> Case {
    Case { at_least, ..case }
}

/// Larger than what is explored in some seconds.
const fn long(case: Case) -> Case {
    Case { quick: false, ..case }
}

pub(crate) const CASES: &[Case] = &[
    least(200, case("a loop x3", LOOP, 3, WEAK)),
    least(1_500, case("a pair x3", PAIR, 3, WEAK)),
    least(1_200, case("a pair x3, put order", PAIR, 3, STRONG)),
    least(400, case("one way x3", ONE_WAY, 3, WEAK)),
    least(800, case("two edges one way x1", TWICE_ONE_WAY, 1, WEAK)),
    least(2_000, called(case("points: a pair x1", PAIR, 1, WEAK), Points)),
    least(2_000, Case { words: 2, ..called(case("parts: one way x2", ONE_WAY, 2, WEAK), Parts(2)) }),
    least(2_500, Case { words: 2, ..called(case("parts: one way x2, put order", ONE_WAY, 2, STRONG), Parts(2)) }),
    least(1_200, called(case("parts: a pair x3", PAIR, 3, WEAK), Parts(1))),
    least(1_500, slow(case("slow: a pair x3", PAIR, 3, WEAK))),
    least(1_200, slow(case("slow: a pair x3, put order", PAIR, 3, STRONG))),
    least(3_500, Case { words: 2, ..slow(case("slow: a pair with two words x3", PAIR, 3, WEAK)) }),
    least(3_500, Case { looks: true, ..slow(case("slow: a pair that looks x3", PAIR, 3, WEAK)) }),
    least(10_000, slow(case("slow: two edges one way x3", TWICE_ONE_WAY, 3, WEAK))),
    least(10_000, slow(case("slow: one to two x2", FAN_OUT, 2, WEAK))),
    least(2_500, slow(case("slow: two to one x2", FAN_IN, 2, WEAK))),
    least(30_000, slow(case("slow: a circle of three x2", CIRCLE, 2, WEAK))),
    least(30_000, slow(case("slow: a circle of three x3, put order", CIRCLE, 3, STRONG))),
    long(Case { words: 2, ..case("a pair with two words x2", PAIR, 2, WEAK) }),
    long(Case { looks: true, ..case("a pair that looks x3", PAIR, 3, WEAK) }),
    long(case("two edges one way x3", TWICE_ONE_WAY, 3, WEAK)),
    long(called(case("points: a pair x3", PAIR, 3, WEAK), Points)),
    long(Case { words: 2, ..called(case("parts: a pair x2", PAIR, 2, STRONG), Parts(2)) }),
    long(case("a circle of three x1", CIRCLE, 1, WEAK)),
    long(slow(case("slow: two edges each way x1", TWICE, 1, WEAK))),
    long(slow(case("slow: a line of three x1", LINE, 1, STRONG))),
    long(slow(case("slow: a ring of three x1", RING, 1, STRONG))),
];
