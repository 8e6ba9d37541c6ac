//! The correct exchange: no race, no wrong data, no deadlock, no member more than an iteration
//! ahead.

use super::exchange::{CELLS, Seen, buffer, config, right};
use checks::exchange::{
    CIRCLE,
    Call::{Partitions, Points},
    Case, LOOP, Member, ONE_WAY, PAIR, called, case, slow,
};
use loom_fabric::{
    Config,
    Delivery::{self, AtFlush, AtPost, Nic},
    RankHandle, check, check_fails, run_after,
};
use rdma_fabric::{Fabric, PutOrder};
use std::sync::{Arc, atomic::Ordering::Relaxed};

const WEAK: PutOrder = PutOrder::None;
const STRONG: PutOrder = PutOrder::SameTarget;

/// All executions with at most `bound` preemptions; there must be at least `at_least`.
fn all(bound: Option<usize>, delivery: Delivery, at_least: usize, case: Case) -> Arc<Seen> {
    let config = Config { late_results: case.slow, ..config(case.ranks(), delivery, case.order) };
    let seen = Arc::new(Seen::default());
    print!("{}, {delivery:?}, {:?}: ", case.name, case.order);
    check(bound, at_least, right(config, case, seen.clone()));
    seen
}

/// A pair, in some executions of which a sender is an iteration ahead of its receiver.
fn pair(bound: Option<usize>, delivery: Delivery, at_least: usize, case: Case) {
    let seen = all(bound, delivery, at_least, case);
    assert!(seen.ahead.load(Relaxed), "nobody was ever ahead");
}

fn pair_once(bound: usize, at_least: [usize; 6]) {
    let (quick, slowly) = (case("a pair x1", PAIR, 1, WEAK), slow(case("slow: a pair x1", PAIR, 1, WEAK)));
    let ordered = Case { order: STRONG, ..slowly };
    let jobs =
        [(AtPost, quick), (AtPost, slowly), (AtPost, ordered), (AtFlush, quick), (AtFlush, slowly), (AtFlush, ordered)];
    for ((delivery, case), at_least) in jobs.into_iter().zip(at_least) {
        pair(Some(bound), delivery, at_least, case);
    }
}

#[test]
fn a_pair_once() {
    pair_once(2, [664, 664, 664, 250, 250, 300]);
}

#[test]
#[ignore = "long: weekly"]
fn a_pair_once_with_three_preemptions() {
    pair_once(3, [2_072, 2_072, 2_072, 814, 814, 1_172]);
}

#[test]
fn a_pair_twice() {
    let (quick, slowly) = (case("a pair x2", PAIR, 2, WEAK), slow(case("slow: a pair x2", PAIR, 2, WEAK)));
    let ordered = Case { order: STRONG, ..slowly };
    for (delivery, case, at_least) in [(AtPost, quick, 1_984), (AtFlush, slowly, 512), (AtFlush, ordered, 928)] {
        pair(Some(1), delivery, at_least, case);
    }
}

#[test]
#[ignore = "long: weekly"]
fn with_two_preemptions() {
    let slowly = slow(case("slow: a pair x2", PAIR, 2, WEAK));
    pair(Some(1), AtPost, 1_984, slowly);
    pair(Some(1), AtPost, 1_984, Case { order: STRONG, ..slowly });
    pair(Some(2), AtFlush, 3_932, case("a pair x2", PAIR, 2, WEAK));
    pair(Some(2), AtPost, 24_960, case("a pair x2", PAIR, 2, WEAK));
    pair(Some(2), AtFlush, 6_724, case("a circle of three x1", CIRCLE, 1, WEAK));
}

#[test]
fn one_way() {
    let (twice, once) = (case("one way x2", ONE_WAY, 2, WEAK), case("one way x1", ONE_WAY, 1, WEAK));
    let words = Case { words: 2, ..case("one way x3, two words", ONE_WAY, 3, WEAK) };
    pair(Some(3), AtPost, 1_290, twice);
    pair(Some(3), AtFlush, 25, twice);
    pair(Some(2), AtPost, 655, words);
    pair(Some(2), AtFlush, 15, words);
    pair(Some(2), Nic, 422, once);
}

#[test]
#[ignore = "long: weekly"]
fn a_pair_by_network_threads() {
    pair(Some(1), Nic, 6_192, case("a pair x1", PAIR, 1, WEAK));
}

/// A single member has no choices except the timing of the network interface.
fn a_loop_by_network_threads(bound: usize, at_least: [(PutOrder, usize, usize); 2]) {
    for (order, at_least, slowly_at_least) in at_least {
        all(Some(bound), Nic, at_least, case("a loop x2", LOOP, 2, order));
        all(Some(bound), Nic, slowly_at_least, slow(case("slow: a loop x2", LOOP, 2, order)));
    }
}

#[test]
#[ignore = "long: weekly"]
fn a_loop_with_three_preemptions() {
    a_loop_by_network_threads(3, [(WEAK, 3_449, 2_648), (STRONG, 1_830, 985)]);
}

#[test]
fn a_loop() {
    a_loop_by_network_threads(2, [(WEAK, 420, 370), (STRONG, 290, 240)]);
    all(Some(2), AtPost, 664, case("a loop in a pair x1", &[&[0, 1], &[0]], 1, WEAK));
}

#[test]
fn a_circle_of_three() {
    let once = case("a circle of three x1", CIRCLE, 1, WEAK);
    pair(Some(1), AtPost, 1_320, once);
    pair(Some(1), AtFlush, 400, once);
}

#[test]
fn members_that_look() {
    pair(Some(1), AtFlush, 850, Case { looks: true, ..case("a pair that looks x2", PAIR, 2, WEAK) });
}

#[test]
#[ignore = "long: weekly"]
fn members_that_look_at_puts_at_once() {
    pair(Some(1), AtPost, 4_680, Case { looks: true, ..case("a pair that looks x2", PAIR, 2, WEAK) });
}

#[test]
fn points() {
    let (once, twice) = (case("points: a pair x1", PAIR, 1, WEAK), case("points: a pair x2", PAIR, 2, WEAK));
    pair(Some(2), AtPost, 499, called(once, Points));
    pair(Some(2), AtFlush, 164, called(once, Points));
    pair(Some(1), AtPost, 680, called(twice, Points));
    pair(Some(1), AtFlush, 200, called(twice, Points));
}

#[test]
fn partitions() {
    let parts = |case| Case { words: 2, ..called(case, Partitions(2)) };
    let (once, twice) = (case("parts: one way x1", ONE_WAY, 1, WEAK), case("parts: one way x2", ONE_WAY, 2, WEAK));
    pair(Some(2), AtPost, 223, parts(once));
    pair(Some(2), AtFlush, 84, parts(once));
    pair(Some(2), AtPost, 3_298, parts(twice));
    pair(Some(2), AtFlush, 228, parts(twice));
}

// Two requests between the same members, waited for in different orders.

/// From rank 0 to rank 1, `iterations` times.
const fn there(iterations: u64) -> Case {
    case("there", ONE_WAY, iterations, WEAK)
}

/// From rank 1 to rank 0.
const fn back(iterations: u64) -> Case {
    case("back", &[&[], &[0]], iterations, WEAK)
}

async fn member(fabric: &Fabric, case: Case) -> Member {
    Member::new(fabric, case, |words| buffer(fabric, words)).await.expect("the set-up is right")
}

/// Rank 0 starts both requests and waits first for the data from rank 1. Rank 1 sends them only
/// after it has received: rank 0's data must leave while it waits for the other request. With the
/// requests `apart`, they do not.
fn crossing(delivery: Delivery, iterations: u64, apart: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let set_up = move |loom: Fabric| async move {
            let other = if apart { RankHandle::apart(&loom) } else { loom.clone() };
            (member(&loom, there(iterations)).await, member(&other, back(iterations)).await)
        };
        run_after(
            Config { cells_per_rank: 2 * CELLS, ..config(2, delivery, WEAK) },
            set_up,
            move |_, (mut there, mut back)| async move {
                for iteration in 1..=iterations {
                    there.begin(iteration).await.expect("no error is possible");
                    if there.number() == 0 {
                        back.begin(iteration).await.expect("no error is possible");
                        back.end().await.expect("no error is possible");
                        there.end().await.expect("no error is possible");
                    } else {
                        there.end().await.expect("no error is possible");
                        back.begin(iteration).await.expect("no error is possible");
                        back.end().await.expect("no error is possible");
                    }
                }
                there.look(iterations).expect("no error is possible");
                back.look(iterations).expect("no error is possible");
                (there, back)
            },
        );
    }
}

#[test]
fn data_leave_while_another_request_is_waited_for() {
    for (delivery, once, twice) in [(AtPost, 332, 1_581), (AtFlush, 58, 284)] {
        check(Some(3), once, crossing(delivery, 1, false));
        check(Some(2), twice, crossing(delivery, 2, false));
    }
}

#[test]
fn polling_one_request_only_deadlocks() {
    check_fails(Some(2), &["deadlock"], crossing(AtPost, 1, true));
}
