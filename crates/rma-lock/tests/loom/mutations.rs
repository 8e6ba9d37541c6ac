//! The reader-preference lock with one step done wrong: each must be reported.
//!
//! Not here: `RememberedNext`, which needs three ranks and two rounds, too much for loom; the explorer of delivery
//! orders finds it.

use crate::{
    mutant::{Rp, Step, assert_idle, mutant},
    rp::{
        Role::{self, Clock, Read, Write, WriteBefore},
        rounds,
    },
};
use loom_fabric::{Access, Config, DataCell, Delivery, check, check_fails, run};
use rma_lock::locks::RpLock;
use std::rc::Rc;

const DEADLOCK: &str = "deadlock";
const EXCLUSION: &str = "mutual exclusion";
const RACE: &str = "Causality violation";
const MISSED: &str = "visibility";
const CORRUPT: &str = "Corrupt";

fn broken(step: Step, roles: &'static [Role], n: usize, config: Config) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        let job = run(config, move |fabric| {
            let (data, role) = (data.clone(), roles[fabric.rank().index()]);
            let mutant = mutant(fabric.clone(), Rp::new(step));
            async move { rounds::<RpLock>(mutant, fabric, data, role, n).await.expect("an error") }
        });
        assert_idle(job.residue());
    }
}

fn caught(step: Step, roles: &'static [Role], delivery: Delivery, expected: &[&str]) {
    caught_in(1, step, roles, delivery, expected);
}

fn caught_in(n: usize, step: Step, roles: &'static [Role], delivery: Delivery, expected: &[&str]) {
    check_fails(Some(3), expected, broken(step, roles, n, Config::new(roles.len(), delivery)));
}

#[test]
fn the_wrapper_alone_changes_nothing() {
    let config = Config::new(2, Delivery::AtFlush);
    check(None, 48, broken(Step::Right, &[Read, Write], 1, config));
}

#[test]
fn no_second_look() {
    caught(Step::NoSecondLook, &[Read, Write], Delivery::AtPost, &[DEADLOCK]);
}

#[test]
fn late_initialisation() {
    // A node must be used before there is anything to initialise.
    caught_in(2, Step::LateInitialisation, &[Write, Write], Delivery::AtPost, &[DEADLOCK, "residue"]);
}

#[test]
fn head_not_flushed() {
    caught(Step::HeadNotFlushed, &[Read, Write], Delivery::AtFlush, &[CORRUPT]);
}

#[test]
fn comparison_ignored() {
    caught(Step::ComparisonIgnored, &[Read, Write], Delivery::AtPost, &[EXCLUSION, RACE]);
}

#[test]
fn data_not_flushed() {
    caught(Step::DataNotFlushed, &[Read, Write], Delivery::AtPost, &[RACE]);
    caught(Step::DataNotFlushed, &[Read, Write], Delivery::AtFlush, &[RACE, MISSED]);
}

#[test]
fn store_for_subtract() {
    caught(Step::StoreForSubtract, &[Read, Read, Write], Delivery::AtPost, &[EXCLUSION, DEADLOCK, CORRUPT]);
}

#[test]
fn no_sweep() {
    caught(Step::NoSweep, &[Read, Write], Delivery::AtPost, &[DEADLOCK]);
}

#[test]
fn tail_ignored() {
    caught(Step::TailIgnored, &[Write, Write], Delivery::AtPost, &[DEADLOCK, "residue"]);
}

#[test]
fn mark_ignored() {
    caught(Step::MarkIgnored, &[Write, Write], Delivery::AtPost, &[DEADLOCK]);
}

#[test]
fn no_mark() {
    caught(Step::NoMark, &[Write, Write], Delivery::AtPost, &[DEADLOCK]);
}

#[test]
fn abandoned_taken_for_woken() {
    let roles = &[WriteBefore, Write, Clock];
    caught(Step::AbandonedTakenForWoken, roles, Delivery::AtPost, &[DEADLOCK, "residue"]);
}

#[test]
fn relaxed_wait() {
    let config = Config { relaxed: |access| matches!(access, Access::Wait(_)), ..Config::new(2, Delivery::AtPost) };
    check_fails(None, &[RACE], broken(Step::Right, &[Write, Write], 1, config));
}
