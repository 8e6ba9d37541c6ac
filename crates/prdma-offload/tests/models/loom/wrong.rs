//! Mutated steps, and weakened memory orders: each must be reported.

use super::exchange::{Seen, config, mutant_exchange, right};
use checks::exchange::{
    Call::Partitions,
    Case,
    ExchangeMutant::{self, *},
    ONE_WAY, PAIR, called, case,
};
use loom_fabric::{
    Access::{self, Flush, Load, Put, Wait},
    Config,
    Delivery::{self, AtFlush, AtPost},
    check, check_fails,
};
use rdma_fabric::{PutOrder, RemoteAddr};
use std::sync::Arc;

const DEADLOCK: &str = "deadlock";
const RACE: &str = "Causality violation";
const WRONG_DATA: &str = "after iteration";
const AHEAD: &str = "more than one iteration ahead";

const WEAK: PutOrder = PutOrder::None;
const ONCE: Case = case("a pair x1", PAIR, 1, WEAK);
const TWICE: Case = case("a pair x2", PAIR, 2, WEAK);
const PARTS: Case = Case { words: 2, ..called(case("parts: one way x2", ONE_WAY, 2, WEAK), Partitions(2)) };

fn job(delivery: Delivery, case: Case) -> Config {
    // The mutant needs another poll anyway.
    config(case.ranks(), delivery, case.order)
}

fn caught(mutant: ExchangeMutant, case: Case, expected: &[&str]) {
    for delivery in [AtPost, AtFlush] {
        print!("{mutant:?}, {}, {delivery:?}: ", case.name);
        check_fails(Some(2), expected, mutant_exchange(job(delivery, case), case, mutant));
    }
}

#[test]
fn the_wrapper_alone_changes_nothing() {
    // No END is repeated before the first iteration ends.
    check(Some(2), 664, mutant_exchange(job(AtPost, ONCE), ONCE, EndRepeated));
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

/// The size of the line of READYs in bytes; the next line contains the ENDs.
const LINE: u64 = 128;

fn is_end(word: RemoteAddr) -> bool {
    word.offset / LINE % 2 == 1
}

fn model(relaxed: fn(Access) -> bool) -> impl Fn() + Send + Sync + 'static {
    let config = Config { relaxed, ..config(2, AtPost, PutOrder::None) };
    right(config, case("a pair x1", PAIR, 1, PutOrder::None), Arc::<Seen>::default())
}

fn raced(relaxed: fn(Access) -> bool) {
    check_fails(Some(2), &[RACE], model(relaxed));
}

/// The receiver's read of its buffer, and the data.
#[test]
fn ready_releases() {
    raced(|access| matches!(access, Put(word) if !is_end(word)));
}

#[test]
fn ready_is_acquired() {
    raced(|access| matches!(access, Load(word) if !is_end(word)));
}

/// The data, and the receiver's read.
#[test]
fn the_flush_or_end_releases() {
    raced(|access| matches!(access, Flush) || matches!(access, Put(word) if is_end(word)));
}

#[test]
fn end_is_acquired() {
    raced(|access| matches!(access, Load(word) if is_end(word)));
    raced(|access| matches!(access, Wait(word) if is_end(word)));
}

/// One of two releases is sufficient, and the wait for READY only wakes: the load after it
/// acquires.
#[test]
fn what_is_not_needed() {
    check(Some(2), 664, model(|access| matches!(access, Flush)));
    check(Some(2), 664, model(|access| matches!(access, Put(word) if is_end(word))));
    check(Some(2), 664, model(|access| matches!(access, Wait(word) if !is_end(word))));
}
