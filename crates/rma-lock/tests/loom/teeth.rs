//! The harness itself: a right lock passes, every broken one is reported.

use crate::mcs::{Broken, Mcs};
use loom_fabric::{Access, Config, DataCell, Delivery, Seat, check, check_fails, run};
use rdma_fabric::{Fabric, FabricError, PutOrder, Rank, RemoteAddr, Result};
use std::rc::Rc;

async fn one_round(fabric: Fabric, data: Rc<DataCell>, broken: Broken) -> Result<Mcs> {
    let lock = Mcs::new(&fabric, broken).await?;
    lock.lock().await?;
    data.enter_write(&fabric);
    data.leave_write();
    lock.unlock().await?;
    Ok(lock)
}

fn model(config: Config, broken: Broken) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        run(config, move |fabric| {
            let data = data.clone();
            async move { one_round(fabric, data, broken).await.expect("no error is possible") }
        });
    }
}

#[test]
fn two_ranks_exclude_each_other() {
    check(None, 99, model(Config::new(2, Delivery::AtPost), Broken::Nothing));
    check(None, 37, model(Config::new(2, Delivery::AtFlush), Broken::Nothing));
    // Four threads.
    check(Some(3), 2_692, model(Config::new(2, Delivery::Nic), Broken::Nothing));
}

#[test]
fn three_ranks_exclude_each_other() {
    check(Some(3), 2_556, model(Config::new(3, Delivery::AtPost), Broken::Nothing));
    check(Some(3), 1_833, model(Config::new(3, Delivery::AtFlush), Broken::Nothing));
}

const RACE: &[&str] = &["Causality violation"];

#[test]
fn a_hand_over_without_flush_is_a_race() {
    check_fails(None, RACE, model(Config::new(2, Delivery::AtPost), Broken::NoFlush));
    check_fails(None, RACE, model(Config::new(2, Delivery::AtPost), Broken::NoFlushButSwap));
}

/// Before atomics, that is: puts are not ordered among themselves.
#[test]
fn no_flush_is_needed_where_puts_are_ordered() {
    let mut config = Config::new(2, Delivery::AtPost);
    config.caps.put_order = PutOrder::AllTargets;
    check(None, 99, model(config, Broken::NoFlushButSwap));
    check_fails(None, RACE, model(config, Broken::NoFlush));
}

#[test]
fn a_relaxed_wait_is_a_race() {
    let config = Config { relaxed: |access| matches!(access, Access::Wait(_)), ..Config::new(2, Delivery::AtPost) };
    check_fails(None, RACE, model(config, Broken::Nothing));
}

#[test]
fn a_late_initialisation_loses_the_wake_up() {
    check_fails(None, &["deadlock"], model(Config::new(2, Delivery::AtPost), Broken::LateInit));
}

#[test]
fn an_ignored_comparison_leaves_the_successor_asleep() {
    check_fails(None, &["deadlock"], model(Config::new(2, Delivery::AtPost), Broken::IgnoredCas));
}

/// Puts a value, then a flag by another operation; returns what the receiver reads after the flag.
fn message(delivery: Delivery, flush: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        run(Config::new(2, delivery), move |fabric| async move {
            let exchange = async {
                let region = fabric.alloc_symmetric(16).await?;
                let key = region.key();
                let far = |offset| RemoteAddr { rank: Rank::new(1), region: key, offset };
                if fabric.rank() == Rank::new(0) {
                    fabric.put_word(&fabric.remote_word::<u64>(far(0))?, 7).await?;
                    if flush {
                        fabric.flush(Rank::new(1)).await?;
                    }
                    fabric.swap(&fabric.remote_word::<u64>(far(8))?, 1).await?;
                } else {
                    let flag = region.word::<u64>(&fabric, 8)?;
                    fabric.wait_until(&flag, rdma_fabric::Deps::All, |flag| flag == 1).await?;
                    let value = fabric.load(&region.word::<u64>(&fabric, 0)?)?;
                    assert_eq!(value, 7, "the atomic overtook the put");
                }
                Ok::<_, FabricError>(region)
            };
            exchange.await.expect("no error is possible")
        });
    }
}

#[test]
fn an_atomic_overtakes_a_put_that_was_not_flushed() {
    for delivery in [Delivery::AtFlush, Delivery::Nic] {
        check(None, 3, message(delivery, true));
        check_fails(None, &["the atomic overtook the put"], message(delivery, false));
    }
}

#[test]
fn a_clock_moved_by_another_rank_ends_a_wait_at_any_time() {
    check(None, 22, || {
        run(Config::new(2, Delivery::AtPost), |fabric| async move {
            let at = rdma_fabric::Time::from_picos(5);
            let raced = async {
                let region = fabric.alloc_symmetric(8).await?;
                if fabric.rank() == Rank::new(0) {
                    let word = region.word::<u64>(&fabric, 0)?;
                    let wait = fabric.wait_until(&word, rdma_fabric::Deps::All, |v| v == 1);
                    match fabric.before(at, wait).await {
                        Some(value) => assert_eq!(value?, 1),
                        None => assert_eq!(fabric.now(), at),
                    }
                } else {
                    Seat::of(&fabric).job().advance(Rank::new(0), 5);
                    let addr = RemoteAddr { rank: Rank::new(0), region: region.key(), offset: 0 };
                    fabric.put_word(&fabric.remote_word::<u64>(addr)?, 1).await?;
                }
                Ok::<_, FabricError>(region)
            };
            raced.await.expect("no error is possible")
        });
    });
}
