//! Two requests between the same members, waited for in different orders.

use super::{
    cases::{ONE_WAY, case},
    exchange::{CELLS, buffer, config},
    member::{Case, Member},
};
use loom_fabric::{
    Config,
    Delivery::{self, AtFlush, AtPost},
    Seat, check, check_fails, run_after,
};
use rdma_fabric::{Fabric, PutOrder};

const WEAK: PutOrder = PutOrder::None;

/// From rank 0 to rank 1, so many times.
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

/// Rank 0 starts both requests and waits for what comes first. Rank 1 sends that only when it has received: what rank 0 sends must leave while it waits for the
/// other request. With the requests `apart` it does not.
fn crossing(delivery: Delivery, iterations: u64, apart: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let set_up = move |loom: Fabric| async move {
            let other = if apart { Seat::apart(&loom) } else { loom.clone() };
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
fn who_looks_after_one_request_only_is_stuck() {
    check_fails(Some(2), &["deadlock"], crossing(AtPost, 1, true));
}
