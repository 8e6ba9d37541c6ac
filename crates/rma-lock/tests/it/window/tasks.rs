//! Several tasks of one rank that use one window: overlapping calls are always refused.

use super::everywhere;
use core::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, join::join};
use rma_lock::{EpochKind, LockMode, Op, Window, WindowError, WindowResult};

/// Polls once; returns whether the future is still pending.
async fn is_pending<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// Waits until another task of the rank has set the flag.
fn set(flag: &Cell<bool>) -> impl Future<Output = ()> + '_ {
    poll_fn(|cx| {
        if flag.get() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

fn open<T>(open: EpochKind, asked: EpochKind) -> impl Fn(WindowResult<T>) -> bool {
    move |begun| matches!(begun, Err(WindowError::EpochOpen { open: o, asked: a }) if (o, a) == (open, asked))
}

async fn locks(fabric: Fabric) -> ProgramResult<u64> {
    let window = Window::<u64>::allocate(&fabric, 4).await?;
    let home = Rank::new(0);
    for _ in 0..8 {
        let (entered, refused) = (Cell::new(false), Cell::new(false));
        let first = async {
            let epoch = window.lock(LockMode::Exclusive, home).await?;
            entered.set(true);
            set(&refused).await;
            epoch.accumulate(0, Op::Sum, &[1]).await?;
            epoch.unlock().await
        };
        let second = async {
            set(&entered).await;
            use EpochKind::{All, Exclusive, Fence, Shared, Start};
            assert!(open(Exclusive, Exclusive)(window.lock(LockMode::Exclusive, home).await));
            assert!(open(Exclusive, Shared)(window.lock(LockMode::Shared, fabric.rank()).await));
            assert!(open(Exclusive, All)(window.lock_all().await));
            assert!(open(Exclusive, Fence)(window.fence().await));
            assert!(open(Exclusive, Start)(window.start(&[home]).await));
            refused.set(true);
        };
        join(first, second).await.0?;
        // When they take turns, both can enter.
        for _ in 0..2 {
            let epoch = window.lock(LockMode::Exclusive, home).await?;
            epoch.accumulate(0, Op::Sum, &[1]).await?;
            epoch.unlock().await?;
        }
    }
    window.barrier().await?;
    let epoch = window.lock(LockMode::Shared, home).await?;
    let sum = epoch.get_one(0).await?;
    epoch.unlock().await?;
    window.free().await?;
    Ok(sum)
}

#[test]
fn an_epoch_excludes_those_of_other_tasks() {
    assert_eq!(everywhere(2, &locks), [48, 48]);
}

async fn barriers(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let window = Window::<u64>::allocate(&fabric, 4).await?;
    use EpochKind::Barrier;
    for _ in 0..8 {
        if fabric.rank() == Rank::new(0) {
            let mut first = pin!(window.barrier());
            assert!(is_pending(first.as_mut()).await, "nobody else has come");
            assert!(open(Barrier, Barrier)(window.barrier().await) && open(Barrier, Barrier)(window.fence().await));
            world.barrier().await?;
            first.await?;
        } else {
            world.barrier().await?;
            window.barrier().await?;
        }
    }
    window.fence().await?.end().await?;
    Ok(window.free().await?)
}

#[test]
fn a_barrier_beside_a_barrier_is_refused() {
    everywhere(3, &barriers);
}

async fn exposures(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let window = Window::<u64>::allocate(&fabric, 4).await?;
    let [target, origin] = [0, 1].map(Rank::new);
    use EpochKind::Wait;
    for _ in 0..8 {
        if fabric.rank() == target {
            let mut second = {
                let exposure = window.post(&[origin]).await?;
                let mut waits = pin!(exposure.wait());
                assert!(is_pending(waits.as_mut()).await, "the origin has not completed");
                assert!(open(Wait, Wait)(window.post(&[origin]).await));
                world.barrier().await?;
                waits.await?;
                window.post(&[origin]).await?
            };
            let origins = [origin];
            let mut posts = pin!(window.post(&origins));
            assert!(is_pending(posts.as_mut()).await, "the second exposure has not ended");
            assert!(open(Wait, Wait)(second.test()));
            world.barrier().await?;
            posts.await?.wait().await?;
        } else {
            world.barrier().await?;
            window.start(&[target]).await?.complete().await?;
            world.barrier().await?;
            for _ in 0..2 {
                window.start(&[target]).await?.complete().await?;
            }
        }
    }
    // No exposure is left that would exclude a fence.
    window.fence().await?.end().await?;
    Ok(window.free().await?)
}

#[test]
fn the_end_of_an_exposure_is_awaited_once() {
    everywhere(2, &exposures);
}
