//! The exchanges that are explored.

use super::{
    Call::{self, *},
    Case,
};
use crate::exploration::Size;
use rdma_fabric::PutOrder;

type Edges = &'static [&'static [usize]];

/// A member that sends to itself.
pub const LOOP: Edges = &[&[0]];
/// Two members that send to each other.
pub const PAIR: Edges = &[&[1], &[0]];
const TWICE: Edges = &[&[1, 1], &[0, 0]];
const TWICE_ONE_WAY: Edges = &[&[1, 1], &[]];
/// One member that sends to another.
pub const ONE_WAY: Edges = &[&[1], &[]];
const FAN_OUT: Edges = &[&[1, 2], &[], &[]];
const FAN_IN: Edges = &[&[2], &[2], &[]];
/// Three members, each of which sends to the next.
pub const CIRCLE: Edges = &[&[1], &[2], &[0]];
const LINE: Edges = &[&[1], &[0, 2], &[1]];
const RING: Edges = &[&[1, 2], &[2, 0], &[0, 1]];
/// Ranks 0 and 1 exchange, rank 2 sends to itself.
const APART: Edges = &[&[1], &[0], &[2]];

const WEAK: PutOrder = PutOrder::None;
const STRONG: PutOrder = PutOrder::SameTarget;

/// Returns a job with blocks of one word.
pub const fn case(name: &'static str, edges: Edges, iterations: u64, order: PutOrder) -> Case {
    Case {
        name,
        edges,
        call: Whole,
        words: 1,
        iterations,
        looks: false,
        views: false,
        order,
        puts_in_order: false,
        slow: false,
        mortal: None,
        at_least: 0,
        size: Size::Test,
    }
}

/// Returns `case` on a fabric where operations never complete when they are posted.
pub const fn slow(case: Case) -> Case {
    Case { slow: true, ..case }
}

/// Returns `case` on a fabric that keeps the order of puts.
const fn ordered(case: Case) -> Case {
    Case { puts_in_order: true, ..case }
}

/// Returns `case` with requests created by `call`.
pub const fn called(case: Case, call: Call) -> Case {
    Case { call, ..case }
}

/// Returns a job of two iterations from one member to another, with two partitions of a word each.
pub(super) const fn two_parts(name: &'static str) -> Case {
    Case { words: 2, ..called(case(name, ONE_WAY, 2, WEAK), Partitions(2)) }
}

/// Returns `case` with the fewest states that it may have.
const fn least(at_least: u64, case: Case) -> Case {
    Case { at_least, ..case }
}

/// Returns `case` as one that takes a second or more to explore.
const fn quick(case: Case) -> Case {
    Case { size: Size::Quick, ..case }
}

/// Returns `case` as one that takes several seconds or more to explore.
const fn long(case: Case) -> Case {
    Case { size: Size::Full, ..case }
}

/// Returns `case` with a `rank` that may die at any moment: its neighbours receive an error that
/// names it, no rank waits forever, and members without an edge to it continue.
const fn dying(rank: usize, case: Case) -> Case {
    Case { mortal: Some(rank), ..case }
}

/// Returns the cases that take the least time, for `cargo test`. They cover each call, both put
/// orders, and a rank that may die.
pub fn small() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.size == Size::Test)
}

/// All cases that are explored exhaustively.
pub const CASES: &[Case] = &[
    least(200, case("a loop x3", LOOP, 3, WEAK)),
    least(1_500, long(case("a pair x3", PAIR, 3, WEAK))),
    least(1_500, long(Case { views: true, ..case("views: a pair x3", PAIR, 3, WEAK) })),
    least(1_500, slow(Case { views: true, ..case("slow: views: a pair x3", PAIR, 3, WEAK) })),
    least(1_200, long(case("a pair x3, put order", PAIR, 3, STRONG))),
    least(1_500, ordered(case("a pair x3, puts in order", PAIR, 3, WEAK))),
    least(1_500, ordered(slow(case("slow: a pair x3, puts in order", PAIR, 3, WEAK)))),
    least(400, case("one way x3", ONE_WAY, 3, WEAK)),
    least(800, case("two edges one way x1", TWICE_ONE_WAY, 1, WEAK)),
    least(2_000, called(case("points: a pair x1", PAIR, 1, WEAK), Points)),
    least(2_000, two_parts("parts: one way x2")),
    least(
        2_500,
        long(Case { words: 2, ..called(case("parts: one way x2, put order", ONE_WAY, 2, STRONG), Partitions(2)) }),
    ),
    least(1_200, long(called(case("parts: a pair x3", PAIR, 3, WEAK), Partitions(1)))),
    least(1_500, slow(case("slow: a pair x3", PAIR, 3, WEAK))),
    least(1_200, slow(case("slow: a pair x3, put order", PAIR, 3, STRONG))),
    least(3_500, quick(Case { words: 2, ..slow(case("slow: a pair with two words x3", PAIR, 3, WEAK)) })),
    least(3_500, quick(Case { looks: true, ..slow(case("slow: a pair that looks x3", PAIR, 3, WEAK)) })),
    least(800, slow(case("slow: two edges one way x3", TWICE_ONE_WAY, 3, WEAK))),
    least(10_000, long(slow(case("slow: one to two x2", FAN_OUT, 2, WEAK)))),
    least(2_500, quick(slow(case("slow: two to one x2", FAN_IN, 2, WEAK)))),
    least(2_000, dying(1, slow(case("rank 1 may die: slow: a pair x2", PAIR, 2, WEAK)))),
    least(2_000, dying(0, slow(case("rank 0 may die: slow: a pair x2, put order", PAIR, 2, STRONG)))),
    least(1_000, dying(0, case("rank 0 may die: a pair x1", PAIR, 1, WEAK))),
    least(1_500, dying(0, ordered(case("rank 0 may die: a pair x2, puts in order", PAIR, 2, WEAK)))),
    least(300, dying(0, slow(case("rank 0 may die: slow: one way x2", ONE_WAY, 2, WEAK)))),
    least(400, dying(1, slow(case("rank 1 may die: slow: one way x2", ONE_WAY, 2, WEAK)))),
    least(2_000, quick(dying(1, called(case("rank 1 may die: parts: a pair x2", PAIR, 2, WEAK), Partitions(1))))),
    least(2_500, long(dying(0, two_parts("rank 0 may die: parts: one way x2")))),
    least(5_000, long(dying(1, two_parts("rank 1 may die: parts: one way x2")))),
    least(20_000, quick(dying(2, slow(case("rank 2 may die: slow: a pair and a loop x1", APART, 1, WEAK))))),
    least(200_000, long(slow(case("slow: a circle of three x2", CIRCLE, 2, WEAK)))),
    least(200_000, long(slow(case("slow: a circle of three x3, put order", CIRCLE, 3, STRONG)))),
    least(240_000, long(dying(0, slow(case("rank 0 may die: slow: a circle of three x1", CIRCLE, 1, WEAK))))),
    least(230_000, long(dying(1, slow(case("rank 1 may die: slow: a pair and a loop x1", APART, 1, WEAK))))),
    long(Case { words: 2, ..case("a pair with two words x2", PAIR, 2, WEAK) }),
    long(Case { looks: true, ..case("a pair that looks x3", PAIR, 3, WEAK) }),
    long(case("two edges one way x3", TWICE_ONE_WAY, 3, WEAK)),
    long(called(case("points: a pair x3", PAIR, 3, WEAK), Points)),
    long(Case { words: 2, ..called(case("parts: a pair x2", PAIR, 2, STRONG), Partitions(2)) }),
    long(case("a circle of three x1", CIRCLE, 1, WEAK)),
    long(slow(case("slow: two edges each way x1", TWICE, 1, WEAK))),
    long(slow(case("slow: a line of three x1", LINE, 1, STRONG))),
    long(slow(case("slow: a ring of three x1", RING, 1, STRONG))),
];
