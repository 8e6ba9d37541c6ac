//! Handles of puts, whose completion time is known when they are posted.

use crate::start::fx100;
use rdma_fabric::{Fabric, Handle, ProgramResult, Rank, Region, Time};
use std::time::Duration;

async fn put(fabric: &Fabric, home: &Region) -> Result<Handle<[u64; 1]>, String> {
    let there = fabric.remote_span::<u64>(home.at(Rank::new(1), 0), 1).map_err(|error| error.to_string())?;
    fabric.try_put(&there, [7], None).map_err(|refused| format!("{refused:?}"))
}

/// Posts until the CPU is ahead of the first put's completion, and takes the result without a wait.
/// Then awaits a put that is complete only in this rank's time: this takes until the events have
/// caught up.
async fn ahead(fabric: Fabric) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(8).await?;
    if fabric.rank() != Rank::new(0) {
        fabric.sleep(Duration::from_micros(50)).await;
        return Ok(0);
    }
    let mut first = put(&fabric, &home).await?;
    assert!(!first.test());
    let mut second = put(&fabric, &home).await?;
    while !second.test() {
        drop(put(&fabric, &home).await?);
    }
    assert!(first.test());
    let posted = fabric.now();
    assert_eq!(first.wait()?, [7]);
    assert_eq!(fabric.now(), posted, "a result that is taken takes no time");
    assert_eq!(second.await?, [7]);
    fabric.flush_all().await?;
    Ok(fabric.now().as_picos())
}

#[test]
fn a_rank_that_is_ahead_takes_results_without_a_wait() {
    let run = fx100(2).run(&ahead).unwrap();
    assert!(run.outs[0] > 0);
    let again = fx100(2).run(&ahead).unwrap();
    assert_eq!(run.stats.trace_hash, again.stats.trace_hash);
}

/// Measures the time of a put and of a flush after it, from day `days` on. The handle is tested and
/// awaited several times, and the handle of another put is dropped.
async fn after(fabric: Fabric, days: u64) -> ProgramResult<(u64, u64)> {
    const DAY: u64 = 86_400_000_000_000_000;
    let home = fabric.alloc_symmetric(8).await?;
    let start = Time::from_picos(days * DAY);
    if fabric.rank() != Rank::new(0) {
        fabric.sleep_until(start + Duration::from_micros(50)).await;
        return Ok((0, 0));
    }
    fabric.sleep_until(start).await;
    let mut handle = put(&fabric, &home).await?;
    assert!(!handle.test());
    let soon = fabric.now() + Duration::from_nanos(1);
    assert!(fabric.before(soon, &mut handle).await.is_none());
    assert!(fabric.before(soon + Duration::from_nanos(1), &mut handle).await.is_none());
    assert_eq!(handle.await?, [7]);
    let sent = fabric.now().picos_since(start);
    drop(put(&fabric, &home).await?);
    fabric.flush_all().await?;
    Ok((sent, fabric.now().picos_since(start)))
}

#[test]
fn puts_take_as_long_when_times_are_long() {
    let took = |days| {
        let run = fx100(2).run(&async |fabric| after(fabric, days).await).unwrap();
        (run.outs[0], run.stats.events)
    };
    let early = took(1);
    assert!(early.0.0 > 0 && early.0.1 > early.0.0, "{early:?}");
    for days in [53, 54, 100, 200] {
        assert_eq!(took(days), early, "{days} days");
    }
}
