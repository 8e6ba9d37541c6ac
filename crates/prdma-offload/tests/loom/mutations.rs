//! Steps done wrong, each of which must be reported.

use super::{
    cases::{ONE_WAY, PAIR, called, case},
    exchange::{config, spoiled},
    member::{Call::Parts, Case},
    wrong::Wrong::{self, *},
};
use loom_fabric::{
    Config,
    Delivery::{self, AtFlush, AtPost},
    check, check_fails,
};
use rdma_fabric::PutOrder;

const DEADLOCK: &str = "deadlock";
const RACE: &str = "Causality violation";
const WRONG_DATA: &str = "after iteration";
const AHEAD: &str = "more than one iteration ahead";

const WEAK: PutOrder = PutOrder::None;
const ONCE: Case = case("a pair x1", PAIR, 1, WEAK);
const TWICE: Case = case("a pair x2", PAIR, 2, WEAK);
const PARTS: Case = Case { words: 2, ..called(case("parts: one way x2", ONE_WAY, 2, WEAK), Parts(2)) };

fn job(delivery: Delivery, case: Case) -> Config {
    // What is spoiled takes another poll anyway.
    config(case.ranks(), delivery, case.order)
}

fn caught(wrong: Wrong, case: Case, expected: &[&str]) {
    for delivery in [AtPost, AtFlush] {
        print!("{wrong:?}, {}, {delivery:?}: ", case.name);
        check_fails(Some(2), expected, spoiled(job(delivery, case), case, wrong));
    }
}

#[test]
fn the_wrapper_alone_changes_nothing() {
    // Nobody puts END again before the first iteration is over.
    check(Some(2), 664, spoiled(job(AtPost, ONCE), ONCE, EndRepeated));
}

#[test]
fn a_boolean_for_a_counter() {
    caught(ReadyIsAFlag, TWICE, &[RACE, WRONG_DATA]);
    caught(ReadyIsAFlag, PARTS, &[RACE, WRONG_DATA, AHEAD]);
}

#[test]
fn data_before_ready() {
    caught(ReadyIgnored, ONCE, &[RACE, WRONG_DATA]);
    caught(ReadyIgnored, PARTS, &[RACE, WRONG_DATA, AHEAD]);
}

#[test]
fn ready_before_the_wait_is_over() {
    caught(ReadyTooEarly, TWICE, &[RACE, WRONG_DATA, AHEAD]);
    caught(ReadyTooEarly, PARTS, &[RACE, WRONG_DATA, AHEAD]);
}

#[test]
fn a_ready_that_is_lost() {
    caught(ReadyLost, TWICE, &[DEADLOCK]);
}

#[test]
fn data_not_flushed() {
    caught(DataNotFlushed, ONCE, &[RACE, WRONG_DATA]);
    caught(DataNotFlushed, PARTS, &[RACE, WRONG_DATA]);
}

#[test]
fn end_before_the_data() {
    caught(EndFirst, ONCE, &[RACE, WRONG_DATA]);
    caught(EndFirst, Case { order: PutOrder::SameTarget, ..ONCE }, &[RACE, WRONG_DATA]);
}

#[test]
fn an_end_that_is_not_ordered() {
    caught(EndNotOrdered, Case { order: PutOrder::SameTarget, ..ONCE }, &[RACE, WRONG_DATA]);
}

#[test]
fn content_with_the_last_end() {
    caught(WaitsForTheLast, TWICE, &[RACE, WRONG_DATA]);
}
