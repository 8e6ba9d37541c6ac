//! Futures that are dropped half-way, after each number of polls; calls in the wrong order or with
//! wrong arguments.

use super::{layouts, threes};
use crate::{FORMS, disturbed, fx100, neighbours};
use checks::jobs::threads;
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use prdma_offload::{Buffer, Form, Layout, Options, PrdmaError, Result, Side};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;

/// More polls than any of these futures needs to make progress.
const MOST: usize = 8;

/// Polls a future `polls` times, then drops it; returns its output if it has completed by then.
async fn polled<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(out) => Poll::Ready(Some(out)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A start that was polled and dropped breaks the request; one that was never polled has no effect.
/// Yields whether it was dropped half-way.
async fn starts(fabric: Fabric, form: Form, polls: usize) -> ProgramResult<bool> {
    let mut hood = neighbours(&fabric).await?;
    let (send, receive, mut parts) = threes(&mut hood, form).await?;
    let started = polled(polls, parts.start()).await;
    let half = started.is_none() && polls > 0;
    if half {
        let broken: Result<()> = Err(PrdmaError::Broken(Box::new(PrdmaError::HalfStarted { iteration: 1 })));
        assert_eq!(
            [parts.start().await, parts.ready(0, 0).await, parts.wait().await],
            [(); 3].map(|()| broken.clone())
        );
        assert_eq!(parts.arrived(0, 0).await.map(drop), broken);
    } else {
        if let Some(started) = started {
            started?;
        } else {
            parts.start().await?;
        }
        send.write(0, &[7; 9])?;
        for slot in [0, 2] {
            parts.ready_range(slot, 0..3).await?;
        }
        parts.wait().await?;
        assert_eq!(receive.to_vec()?, [7, 7, 7, 0, 0, 0, 7, 7, 7]);
    }
    hood.group_mut().barrier().await?;
    Ok(half)
}

/// At all members in the same way: a member that breaks a request leaves its neighbours without a
/// peer.
#[test]
fn a_start_that_is_dropped_half_way_breaks_the_request() {
    for form in FORMS {
        let mut half = 0;
        for polls in 0..MOST {
            let outs = fx100(3).run(&async |fabric| starts(fabric, form, polls).await).unwrap().outs;
            half += outs.iter().filter(|half| **half).count();
        }
        assert!(half > 0, "{form}: a start was never dropped half-way");
    }
}

/// A loop each way; the first partition is marked by a call that is dropped. Yields whether it was
/// dropped half-way.
async fn marks(fabric: Fabric, form: Form, polls: usize) -> ProgramResult<bool> {
    let mut hood = neighbours(&fabric).await?;
    let (send, receive, mut parts) = threes(&mut hood, form).await?;
    let mut half = false;
    for k in 1..=3 {
        send.write(0, &[k; 9])?;
        parts.start().await?;
        // The member's own READY arrives: a marked partition is sent immediately.
        fabric.compute(Duration::from_micros(20)).await;
        match polled(polls, parts.ready(0, 0)).await {
            Some(marked) => marked?,
            None if polls == 0 => parts.ready(0, 0).await?,
            None => half = true,
        }
        let twice = PrdmaError::ReadyTwice { slot: 0, partition: 0, iteration: k };
        assert_eq!(parts.ready(0, 0).await, Err(twice));
        parts.ready_range(0, 1..3).await?;
        parts.ready_range(2, 0..3).await?;
        parts.wait().await?;
        assert_eq!(receive.to_vec()?, [k, k, k, 0, 0, 0, k, k, k], "{form}: {k}, dropped after {polls} polls");
    }
    Ok(half)
}

/// Queues have room, so with them a call completes at its first poll.
#[test]
fn a_mark_that_is_dropped_half_way_is_made() {
    for form in FORMS {
        let run = |polls| fx100(1).run(&async |fabric| marks(fabric, form, polls).await).unwrap().outs[0];
        assert_eq!((0..MOST).any(run), form == Form::Cpu, "{form}: whether a call was dropped half-way");
    }
}

/// Each wait is started, dropped, and started again. Yields the number of drops half-way.
async fn waits(fabric: Fabric, form: Form, polls: usize) -> ProgramResult<usize> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
    let (send, receive, mut parts) = threes(&mut hood, form).await?;
    let (left, right) = ((n + me - 1) % n, (me + 1) % n);
    let mut half = 0;
    for k in 1..=10 {
        send.write(0, &[k << 8 | me; 9])?;
        fabric.compute(Duration::from_micros((k * 7 + me * 5) % 11)).await;
        parts.start().await?;
        for slot in [2, 0] {
            parts.ready_range(slot, 0..3).await?;
        }
        match polled(polls, parts.wait()).await {
            Some(waited) => waited?,
            None => {
                half += usize::from(polls > 0);
                assert!(parts.is_active());
                parts.wait().await?;
            }
        }
        let want = [[k << 8 | left; 3], [0; 3], [k << 8 | right; 3]].concat();
        assert_eq!(receive.to_vec()?, want, "{form}: member {me} in {k}, dropped after {polls} polls");
    }
    hood.group_mut().barrier().await?;
    Ok(half)
}

#[test]
fn a_wait_that_is_dropped_goes_on_later() {
    for form in FORMS {
        let mut half = 0;
        for polls in 0..MOST {
            for seed in 0..4 {
                let job = disturbed(3, 5).seed(seed);
                half += job.run(&async |fabric| waits(fabric, form, polls).await).unwrap().outs.iter().sum::<usize>();
            }
        }
        assert!(half > 50, "{form}: waits were dropped half-way {half} times");
    }
}

async fn misuse(fabric: Fabric, form: Form) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let me = hood.group().me();
    let (_, _, mut parts) = threes(&mut hood, form).await?;
    assert_eq!(parts.ready(0, 0).await, Err(PrdmaError::Inactive));
    assert_eq!(parts.arrived(0, 0).await, Ok(true));
    assert_eq!(parts.wait().await, Ok(()));
    for iteration in 1..=3 {
        parts.start().await?;
        assert_eq!(parts.start().await, Err(PrdmaError::Active { iteration }));
        let side = Side::Destination;
        let none = |slot, first, end| Err(PrdmaError::NoPartition { side, slot, first, end, slots: 3, partitions: 3 });
        assert_eq!(parts.ready(0, 3).await, none(0, 3, 4));
        assert_eq!(parts.ready(3, 0).await, none(3, 0, 1));
        assert_eq!(parts.ready_range(2, 1..4).await, none(2, 1, 4));
        let arrived = parts.arrived(0, 3).await;
        assert!(matches!(arrived, Err(PrdmaError::NoPartition { side: Side::Source, .. })), "{arrived:?}");
        parts.ready(0, 1).await?;
        let twice = Err(PrdmaError::ReadyTwice { slot: 0, partition: 1, iteration });
        assert_eq!(parts.ready(0, 1).await, twice);
        // None of the range is marked then.
        assert_eq!(parts.ready_range(0, 0..3).await, twice);
        let idle = |slot, partition| PrdmaError::NotReady { slot, partition, iteration };
        assert_eq!(parts.wait().await, Err(idle(0, 0)));
        parts.ready(0, 0).await?;
        parts.ready_range(2, 0..3).await?;
        assert_eq!(parts.test().await, Err(idle(0, 2)));
        parts.ready(0, 2).await?;
        // Partitions of the slot without a neighbour need not be marked.
        parts.wait().await?;
        assert!(!parts.is_active() && parts.iterations() == iteration);
    }
    let buffer = Buffer::<u64>::new(&fabric, 36)?;
    let (send, receive) = (layouts(false, 4), Layout::contiguous::<u64>(20, 4).unwrap());
    let receives = [receive, Layout::nothing(), Layout::contiguous::<u64>(24, 4).unwrap()];
    let options = Options::form(form);
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 3, &options).await.map(drop);
    assert_eq!(told, Err(PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 3, of: 4 }));
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 0, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Uneven { partitions: 0, .. })), "{told:?}");
    // One member sends columns that cannot be divided evenly.
    let column = |at| Layout::vector::<u64>(at, 2, 2, 4).unwrap();
    let columns = [column(0), Layout::nothing(), column(2)];
    let mine = if me == 0 { &columns[..] } else { &send[..] };
    let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
    assert_eq!(
        told,
        Err(match me {
            0 => PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 4, of: 2 },
            _ => PrdmaError::ElsewhereFailed,
        })
    );
    let many = if me == 0 { 2 } else { 4 };
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, many, &options).await.map(drop);
    assert_eq!(told, Err(PrdmaError::Disagreement { what: "numbers of partitions", least: 2, most: 4 }));
    // Sizes are reported for whole blocks.
    let long = [Layout::contiguous::<u64>(0, 8).unwrap(), Layout::nothing(), Layout::contiguous::<u64>(8, 4).unwrap()];
    let mine = if me == 1 { &long[..] } else { &send[..] };
    let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
    let size = |side, slot, member, mine, theirs| PrdmaError::Size { side, slot, member, mine, theirs };
    assert_eq!(
        told,
        Err(match me {
            0 => size(Side::Source, 2, 1, 32, 64),
            1 => size(Side::Destination, 0, 0, 64, 32),
            _ => PrdmaError::ElsewhereFailed,
        })
    );
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn misuse_is_told_and_changes_nothing() {
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        threads(3).run(&async |fabric| misuse(fabric, form).await).unwrap();
        fx100(3).run(&async |fabric| misuse(fabric, form).await).unwrap();
    }
}
