//! `block_on` inside a rank in virtual time.

use crate::fx100;
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank, join::join};
use tofu2_sim::{JobError, shm::block_on};

/// Returns the outcome of a job whose first rank blocks on the future that `blocks` creates.
fn ends<T, F: Future<Output = T>>(blocks: impl Fn(Fabric) -> F + Sync) -> Result<(), JobError> {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        if fabric.rank() == Rank::new(0) {
            block_on(blocks(fabric));
        }
        Ok(())
    };
    fx100(2).run(&program).map(drop)
}

fn is_told(ended: Result<(), JobError>) -> bool {
    match ended {
        Err(JobError::RankPanicked { rank, message }) => {
            rank == Rank::new(0) && message.starts_with("block_on of a pending future inside rank 0")
        }
        _ => false,
    }
}

#[test]
fn a_pending_future_is_told() {
    assert!(is_told(ends(async |fabric: Fabric| fabric.sleep(Duration::from_micros(1)).await)), "a sleep");
    assert!(is_told(ends(async |fabric: Fabric| fabric.compute(Duration::from_micros(1)).await)), "computing");
    assert!(is_told(ends(async |fabric: Fabric| fabric.next_notice(Deps::All).await)), "a notice");
    let atomic = async |fabric: Fabric| {
        let region = fabric.alloc(8)?;
        fabric.atomic(&region.word_of::<u64>(&fabric, fabric.rank(), 0)?, Amo::Add(1)).await
    };
    assert!(is_told(ends(atomic)), "an atomic");
    let both = async |fabric: Fabric| {
        join(fabric.sleep(Duration::from_micros(1)), fabric.sleep(Duration::from_micros(2))).await
    };
    assert!(is_told(ends(both)), "joined");
}

#[test]
fn what_is_ready_at_once_may_be_blocked_on() {
    ends(async |fabric: Fabric| fabric.sleep(Duration::ZERO).await).unwrap();
    ends(async |_| 7).unwrap();
}

/// Polls a future once with a waker that is not the simulator's, as combinators do, then awaits it.
async fn combines(fabric: Fabric) -> ProgramResult<()> {
    let mut sleep = pin!(fabric.sleep(Duration::from_micros(1)));
    let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending);
    sleep.await;
    Ok(())
}

#[test]
fn a_simulation_may_run_inside_block_on() {
    block_on(async { fx100(2).run(&combines).map(drop) }).unwrap();
    let within = async |_: Fabric| -> ProgramResult<()> { Ok(fx100(2).run(&combines).map(drop)?) };
    checks::jobs::threads(2).run(&within).unwrap();
}
