//! Every future of the lock, dropped after every possible number of polls.
//!
//! Results of operations arrive one poll late here, so that a future can be dropped at each
//! operation, with its effect at the home and its result unseen. Acquisitions and releases race
//! with the ranks that would wake them; the remaining ranks must end, and the lock must look as if
//! the dropped call had never been made.

use super::{
    LoomRole::{self, *},
    Seen, broken, model_of,
};
use checks::lock::mutants::QueuedMutant::{self, AbandonedTakenForWoken, DroppedAndForgotten};
use loom_fabric::{Config, Delivery, check, check_fails};
use rdma_fabric::PutOrder;
use rma_lock::locks::RpLock;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// A provider that orders nothing, and one that orders puts before atomics, for which the lock
/// takes other paths.
const ORDERS: [PutOrder; 2] = [PutOrder::None, PutOrder::AllTargets];

fn config(ranks: usize, order: PutOrder) -> Config {
    let delivery = if order == PutOrder::None { Delivery::AtFlush } else { Delivery::AtPost };
    let mut config = Config { late_results: true, ..Config::new(ranks, delivery) };
    config.caps.put_order = order;
    config
}

/// Checks `dropped` together with `others` for every number of polls up to the one that always
/// suffices, which is at least `points`.
fn everywhere(bound: usize, dropped: fn(u8) -> LoomRole, others: &[LoomRole], points: u8) {
    for order in ORDERS {
        let mut polls = 0;
        loop {
            let roles: Vec<_> = [dropped(polls)].into_iter().chain(others.iter().copied()).collect();
            let seen = Arc::new(Seen::default());
            print!("{roles:?}, {order:?}: ");
            check(Some(bound), 1, model_of::<RpLock>(config(roles.len(), order), roles, 1, seen.clone()));
            if seen.refused_first.load(Relaxed) == 0 {
                break;
            }
            polls += 1;
            assert!(polls < 40, "it is never over");
        }
        assert!(polls > points, "{polls} points to drop at where more than {points} were recorded");
    }
}

#[test]
fn one_rank_drops_beside_another() {
    everywhere(3, ReadFor, &[Write], 4);
    everywhere(3, WriteFor, &[Read], 4);
    everywhere(3, WriteFor, &[Write], 4);
}

#[test]
fn one_of_three_drops() {
    everywhere(2, WriteFor, &[WriteFor(3), Write], 4);
    everywhere(2, ReadFor, &[Read, Write], 4);
    everywhere(2, WriteFor, &[Read, Write], 4);
}

/// Tries may also be refused, so the sufficient number of polls is given.
#[test]
fn dropped_tries() {
    for (dropped, other) in [(TryReadFor as fn(u8) -> LoomRole, Write), (TryWriteFor, Read), (TryWriteFor, Write)] {
        for (order, polls) in ORDERS.into_iter().flat_map(|order| (0..12).map(move |polls| (order, polls))) {
            let roles = vec![dropped(polls), other];
            print!("{roles:?}, {order:?}: ");
            check(Some(3), 1, model_of::<RpLock>(config(2, order), roles, 1, Arc::default()));
        }
    }
}

#[test]
fn dropped_releases() {
    everywhere(3, ReadReleaseFor, &[Write], 1);
    everywhere(3, WriteReleaseFor, &[Read], 2);
    everywhere(3, WriteReleaseFor, &[Write], 2);
}

/// After the given number of polls the dropped future has had an effect and is waiting.
#[test]
fn what_is_not_done_for_the_dropped_is_found() {
    const SHOWN: [(QueuedMutant, &[LoomRole]); 4] = [
        (DroppedAndForgotten, &[ReadFor(1), Write]),
        (DroppedAndForgotten, &[WriteFor(2), Write]),
        (AbandonedTakenForWoken, &[WriteFor(3), Write]),
        (AbandonedTakenForWoken, &[ReadFor(4), Write]),
    ];
    for (mutant, roles) in SHOWN {
        let config = config(roles.len(), PutOrder::None);
        check_fails(Some(3), &["deadlock", "residue"], broken(Some(mutant), roles, 1, config));
    }
}
