//! Full queues, room, and foreign wakers.

use crate::start::{add, at, fx100, meet};
use rdma_fabric::{Fabric, ProgramResult, Refused, op};
use std::{
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, atomic::AtomicBool, atomic::Ordering},
    task::{Context, Poll, Wake, Waker},
};
use tofu2_virt::Platform;

async fn fill_up(fabric: Fabric) -> ProgramResult<usize> {
    let home = fabric.alloc_symmetric(64).await?;
    let word = fabric.remote_word::<u64>(at(0, home.key(), 0))?;
    let mut posted = 0;
    loop {
        match fabric.try_post(add(&word, 1)) {
            Ok(handle) => drop(handle),
            Err(Refused::Full(_)) => break,
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
        posted += 1;
    }
    // Puts, gets and nops are refused as well, and returned.
    let buffer = match fabric.try_post(op::Put { to: &word.as_span(), from: vec![5u64], notice: None }) {
        Err(Refused::Full(op)) => op.from,
        _ => panic!("not refused as full"),
    };
    assert_eq!(buffer, [5]);
    assert!(matches!(fabric.try_post(op::Get { from: &word.as_span(), to: vec![0u64] }), Err(Refused::Full(_))));
    assert!(matches!(fabric.try_post(op::Nop), Err(Refused::Full(_))));
    // Branches that wait for room get it in the order of their arrival.
    let order = RefCell::new(vec![]);
    let branches = (0..20).map(|i| {
        let (fabric, word, order) = (&fabric, &word, &order);
        async move {
            let handle = fabric.post(add(word, 1)).await?;
            order.borrow_mut().push(i);
            handle.await
        }
    });
    for result in rdma_fabric::join::join_all(branches).await {
        result?;
    }
    assert_eq!(order.into_inner(), (0..20).collect::<Vec<_>>());
    meet(&fabric, &home, 16).await?;
    Ok(posted)
}

#[test]
fn a_full_transmit_queue_refuses_and_makes_room_in_order() {
    let platform = Platform::fx100().with("transmit_queue", 16).unwrap();
    let run = checks::jobs::virtual_time(&platform, 3).run(&fill_up).unwrap();
    assert_eq!(run.outs, [16; 3]);
    assert_eq!(fx100(1).run(&fill_up).unwrap().outs, [2048]);
}

/// Polls its parts only when they were woken, as combinators outside this workspace do.
struct FlagWaker(AtomicBool, Mutex<Option<Waker>>);

impl Wake for FlagWaker {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        if let Some(waker) = self.1.lock().unwrap().take() {
            waker.wake();
        }
    }
}

async fn only_when_told<T>(future: impl Future<Output = T>) -> (T, u32) {
    let told = Arc::new(FlagWaker(AtomicBool::new(true), Mutex::new(None)));
    let waker = Waker::from(told.clone());
    let mut future = pin!(future);
    let mut polls = 0;
    std::future::poll_fn(|cx| {
        *told.1.lock().unwrap() = Some(cx.waker().clone());
        if told.0.swap(false, Ordering::SeqCst) {
            polls += 1;
            if let Poll::Ready(out) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready((out, polls));
            }
        }
        Poll::Pending
    })
    .await
}

/// Yields once.
async fn give_way() {
    let mut given = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn foreign(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let me = fabric.rank().index();
    let word = fabric.remote_word::<u64>(at(1 - me, home.key(), 0))?;
    let own = fabric.local_word::<u64>(at(me, home.key(), 0))?;
    // Every kind of wait wakes a foreign waker.
    let (old, polls) = only_when_told(fabric.fetch_add(&word, 1)).await;
    assert!(old? == 0 && polls >= 2);
    only_when_told(fabric.wait_until(&own, Default::default(), |v| v > 0)).await.0?;
    only_when_told(fabric.put_notify(&word.as_span(), [9], 1)).await.0?;
    only_when_told(fabric.next_notice(Default::default())).await.0?;
    only_when_told(fabric.flush_all()).await.0?;
    only_when_told(fabric.compute(std::time::Duration::from_nanos(5))).await;
    only_when_told(fabric.sleep(std::time::Duration::from_nanos(5))).await;
    // A program that polls lets virtual time pass.
    let mut handle = fabric.post(add(&word, 1)).await?;
    let (mut turns, start) = (0, fabric.now());
    while !handle.test() {
        give_way().await;
        turns += 1;
    }
    assert_eq!(handle.wait()?, 9);
    assert!(turns > 10 && fabric.now() > start);
    meet(&fabric, &home, 16).await?;
    Ok(())
}

#[test]
fn foreign_wakers_are_told_and_polling_takes_time() {
    fx100(2).run(&foreign).unwrap();
}
