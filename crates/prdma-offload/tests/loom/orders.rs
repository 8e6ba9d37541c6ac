//! Memory orders of the exchange, each taken away.

use super::{
    cases::{PAIR, case},
    exchange::{Seen, config, right},
};
use loom_fabric::{
    Access::{self, Flush, Load, Put, Wait},
    Config,
    Delivery::AtPost,
    check, check_fails,
};
use rdma_fabric::{PutOrder, RemoteAddr};
use std::sync::Arc;

const RACE: &str = "Causality violation";
/// READYs stand in one line of so many bytes, ENDs in the next.
const LINE: u64 = 128;

fn is_end(word: RemoteAddr) -> bool {
    word.offset / LINE % 2 == 1
}

fn model(relaxed: fn(Access) -> bool) -> impl Fn() + Send + Sync + 'static {
    let config = Config { relaxed, ..config(2, AtPost, PutOrder::None) };
    right(config, case("a pair x1", PAIR, 1, PutOrder::None), Arc::<Seen>::default())
}

fn caught(relaxed: fn(Access) -> bool) {
    check_fails(Some(2), &[RACE], model(relaxed));
}

/// The receiver's look at its buffer, and the data.
#[test]
fn ready_releases() {
    caught(|access| matches!(access, Put(word) if !is_end(word)));
}

#[test]
fn ready_is_acquired() {
    caught(|access| matches!(access, Load(word) if !is_end(word)));
}

/// The data, and the receiver's look.
#[test]
fn the_flush_or_end_releases() {
    caught(|access| matches!(access, Flush) || matches!(access, Put(word) if is_end(word)));
}

#[test]
fn end_is_acquired() {
    caught(|access| matches!(access, Load(word) if is_end(word)));
    caught(|access| matches!(access, Wait(word) if is_end(word)));
}

/// Either of two releases does, and the wait for READY only wakes: who looks afterwards acquires.
#[test]
fn what_is_not_needed() {
    check(Some(2), 664, model(|access| matches!(access, Flush)));
    check(Some(2), 664, model(|access| matches!(access, Put(word) if is_end(word))));
    check(Some(2), 664, model(|access| matches!(access, Wait(word) if !is_end(word))));
}
