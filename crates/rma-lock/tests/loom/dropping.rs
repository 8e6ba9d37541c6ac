//! Every future of the lock, dropped after each number of polls it can have.
//!
//! Results of operations come one poll late here, so that each operation is a point to drop at, with its effect at the home and its
//! result unseen. Acquisitions and releases race with those who would wake them; who is left must end, and the lock be as if the
//! dropped one had never come.

use crate::{
    mutant::{Rp, Step, assert_idle, mutant},
    rp::{
        Role::{self, *},
        Seen, model_of, rounds,
    },
};
use loom_fabric::{Config, DataCell, Delivery, check, check_fails, run};
use rdma_fabric::PutOrder;
use rma_lock::locks::RpLock;
use std::{
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// A provider that orders nothing, and one that orders puts before atomics, for which the lock goes other ways.
const ORDERS: [PutOrder; 2] = [PutOrder::None, PutOrder::AllTargets];

fn config(ranks: usize, order: PutOrder) -> Config {
    let delivery = if order == PutOrder::None { Delivery::AtFlush } else { Delivery::AtPost };
    let mut config = Config { late_results: true, ..Config::new(ranks, delivery) };
    config.caps.put_order = order;
    config
}

/// Check `dropped` beside `others` for every number of polls up to the one that always suffices; that is at least `points`.
fn everywhere(bound: usize, dropped: fn(u8) -> Role, others: &[Role], points: u8) {
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
fn a_dropped_reader_beside_a_writer() {
    everywhere(3, ReadFor, &[Write], 4);
}

#[test]
fn a_dropped_writer_beside_a_reader() {
    everywhere(3, WriteFor, &[Read], 4);
}

#[test]
fn a_dropped_writer_beside_a_writer() {
    everywhere(3, WriteFor, &[Write], 4);
}

#[test]
fn two_dropped_writers_of_a_writer() {
    everywhere(2, WriteFor, &[WriteFor(3), Write], 4);
}

#[test]
fn a_dropped_reader_among_readers_and_a_writer() {
    everywhere(2, ReadFor, &[Read, Write], 4);
}

#[test]
fn a_dropped_writer_among_a_reader_and_a_writer() {
    everywhere(2, WriteFor, &[Read, Write], 4);
}

/// Tries may be refused as well, so the number of polls that suffices is given.
#[test]
fn dropped_tries() {
    for (dropped, other) in [(TryReadFor as fn(u8) -> Role, Write), (TryWriteFor, Read), (TryWriteFor, Write)] {
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

#[test]
fn without_late_results_the_fast_ways_are_right() {
    for roles in [[Write, Write], [Read, Write], [Read, Read], [TryWrite, Write], [TryWrite, Read], [TryRead, Write]] {
        let seen = Arc::new(Seen::default());
        let config = Config { late_results: false, ..config(2, PutOrder::AllTargets) };
        print!("{roles:?} x 3: ");
        check(Some(3), 10, model_of::<RpLock>(config, roles.to_vec(), 3, seen));
    }
}

fn broken(step: Step, roles: &'static [Role]) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let job = run(config(roles.len(), PutOrder::None), move |fabric| {
            let (data, role) = (data.clone(), roles[fabric.rank().index()]);
            let mutant = mutant(fabric.clone(), Rp::new(step));
            async move { rounds::<RpLock>(mutant, fabric, data, role, 1).await.expect("an error") }
        });
        assert_idle(job.residue());
    }
}

/// The number of polls is one at which the dropped one has done something and waits.
#[test]
fn what_is_not_done_for_the_dropped_is_found() {
    const LEFT: &[&str] = &["deadlock", "residue"];
    check_fails(Some(3), LEFT, broken(Step::DroppedAndForgotten, &[ReadFor(1), Write]));
    check_fails(Some(3), LEFT, broken(Step::DroppedAndForgotten, &[WriteFor(2), Write]));
    check_fails(Some(3), LEFT, broken(Step::AbandonedTakenForWoken, &[WriteFor(3), Write]));
    check_fails(Some(3), LEFT, broken(Step::AbandonedTakenForWoken, &[ReadFor(4), Write]));
}
