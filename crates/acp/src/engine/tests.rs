//! When direct puts are made visible (only the code with the barrier clears `unseen`), and which
//! operations do not start after a failure.

use super::{Engine, Kind};
use crate::{AcpError, Handle, Order};
use checks::jobs::threads;
use core::{
    future::poll_fn,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::sync::Arc;

/// Returns an engine after a direct put, over a network that does or does not preserve the order of
/// puts.
fn after_a_put(in_order: bool) -> Engine {
    let mut engine = Engine { in_order, ..Engine::default() };
    assert_eq!(engine.count_over(), Handle(1));
    assert!(engine.unseen && !engine.is_settled());
    engine
}

const WAITING: [Order; 3] = [Order::All, Order::Continue, Order::After(Handle(1))];

#[test]
fn a_direct_put_is_visible_before_what_waits_for_it() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        for in_order in [false, true] {
            for order in WAITING {
                let mut engine = after_a_put(in_order);
                assert!(engine.may_start(&fabric, order));
                assert!(!engine.unseen, "{order:?} at once, {in_order}");
                let mut engine = after_a_put(in_order);
                let unseen = engine.issue(&fabric, Kind::Atomic, Box::pin(async { Ok(()) }), order);
                assert!(unseen == Handle(2) && !engine.unseen, "{order:?} issued, {in_order}");
            }
            // Only puts precede an operation without dependencies, and some networks preserve their
            // order.
            let mut engine = after_a_put(in_order);
            assert!(engine.may_start(&fabric, Order::None));
            assert_eq!(engine.unseen, in_order);
            let mut engine = after_a_put(in_order);
            assert_eq!(engine.complete_now(&fabric), Some(1));
            assert!(engine.is_settled());
            let mut engine = after_a_put(in_order);
            let polled = engine.poll_complete(&fabric, 1, &mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(()))) && engine.is_settled());
        }
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

/// Operations that wait for a failed operation, by its handle or for all, do not start; those that
/// wait for an earlier one, or for nothing, do.
#[test]
fn operations_behind_a_failure_do_not_start() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let begun = Arc::new(AtomicU8::new(0));
        let noting = |number: u8| -> super::Flight {
            let begun = begun.clone();
            Box::pin(async move {
                begun.fetch_or(1 << number, Relaxed);
                Ok(())
            })
        };
        let mut engine = Engine::default();
        let first = engine.issue(&fabric, Kind::Atomic, over_after(1, Ok(())), Order::None);
        let second = engine.issue(&fabric, Kind::Atomic, over_after(1, Err(AcpError::OtherThread)), Order::None);
        engine.issue(&fabric, Kind::Atomic, noting(3), first.into());
        engine.issue(&fabric, Kind::Atomic, noting(4), second.into());
        engine.issue(&fabric, Kind::Atomic, noting(5), Order::None);
        let last = engine.issue(&fabric, Kind::Atomic, noting(6), Order::All);
        let mut cx = Context::from_waker(Waker::noop());
        for (until, error) in [
            (second, AcpError::OtherThread),
            (Handle(4), AcpError::NotStarted { because: second }),
            (last, AcpError::NotStarted { because: second }),
        ] {
            let mut done = engine.poll_complete(&fabric, until.0, &mut cx);
            while done.is_pending() {
                done = engine.poll_complete(&fabric, until.0, &mut cx);
            }
            assert_eq!(done, Poll::Ready(Err(error)), "{until:?}");
        }
        assert_eq!(begun.load(Relaxed), 1 << 3 | 1 << 5);
        assert_eq!(engine.poll_complete(&fabric, last.0, &mut cx), Poll::Ready(Ok(())));
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

/// Returns a flight that completes with `end` after `polls` polls.
fn over_after(mut polls: usize, end: crate::Result<()>) -> super::Flight {
    Box::pin(poll_fn(move |_| match polls {
        0 => Poll::Ready(end.clone()),
        _ => {
            polls -= 1;
            Poll::Pending
        }
    }))
}

/// Of several failures, only the first is reported; this includes the failure of an operation that
/// another rank executes, and that completes before its predecessors.
#[test]
fn the_first_failure_is_reported() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut cx = Context::from_waker(Waker::noop());
        let failed = |number: u32| AcpError::NoPermutation { rank: Rank::new(number) };
        for fails in 0..8u32 {
            let mut engine = Engine::default();
            for number in 0..3 {
                let end = if fails >> number & 1 == 1 { Err(failed(number)) } else { Ok(()) };
                let kind = Kind::Delegated { pair: None, server: number };
                // The first operation takes longest.
                engine.issue(&fabric, kind, over_after(4 - number as usize, end), Order::None);
            }
            let mut done = Poll::Pending;
            while done.is_pending() {
                done = engine.poll_complete(&fabric, 3, &mut cx);
            }
            let first = (0..3).find(|number| fails >> number & 1 == 1);
            assert_eq!(done, Poll::Ready(first.map_or(Ok(()), |number| Err(failed(number)))), "{fails:b}");
            assert_eq!(engine.poll_complete(&fabric, 3, &mut cx), Poll::Ready(Ok(())), "{fails:b}");
        }
        Ok(())
    };
    threads(1).run(&program).unwrap();
}
