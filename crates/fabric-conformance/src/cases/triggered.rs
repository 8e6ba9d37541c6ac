//! Triggered puts: sentences P1–P4.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use fabric_offload::{
    Triggers,
    triggered::{Spans, Transfer, TriggeredPut, TriggeredPuts},
};
use rdma_fabric::{Blocks, Deps, Fabric, LocalSpan, LocalWord, ProgramResult, Rank, Region, RemoteWord, Result};
use std::{
    future::{Future, pending},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

/// The number of elements in a transfer.
const LEN: usize = 6;

/// The bytes of an edge: READY, END, the data sent, the data received.
const EDGE: u64 = 16 + 16 * LEN as u64;

/// A put to the next rank of a ring, triggered when that rank is ready, and the put that the
/// previous rank makes here.
struct Edge {
    fabric: Fabric,
    puts: TriggeredPuts,
    sent: LocalSpan<u64>,
    /// A word at the previous rank.
    ready: RemoteWord<u64>,
    end: LocalWord<u64>,
    received: LocalSpan<u64>,
}

impl Edge {
    /// Creates edge `number` of those whose words lie in a symmetric `region`.
    fn new(fabric: &Fabric, region: &Region, number: u64) -> Result<Self> {
        let (me, ranks, at) = (fabric.rank().number(), fabric.ranks() as u32, number * EDGE);
        let (next, before) = (Rank::new((me + 1) % ranks), Rank::new((me + ranks - 1) % ranks));
        let sent = region.span(fabric, at as usize + 16, LEN)?;
        let there = fabric.remote_span::<u64>(region.at(next, at + 16 + 8 * LEN as u64), LEN)?;
        // Two words, and two blocks of a word twice.
        let mut spans = Spans::new(vec![(sent.slice(0..2)?, there.slice(0..2)?)]);
        for first in [2, 3] {
            let words = first..first + 3;
            let blocks = Blocks { count: 2, stride: 16 };
            spans.add_blocks(sent.slice(words.clone())?, there.slice(words)?, 1, blocks)?;
        }
        let transfer = Transfer::Eight(spans);
        let end = fabric.remote_word(region.at(next, at + 8))?;
        let put = TriggeredPut::new(vec![region.word(fabric, at as usize)?], transfer, end).answered();
        Ok(Edge {
            fabric: fabric.clone(),
            puts: TriggeredPuts::new(fabric, vec![put], &[next]),
            sent,
            ready: fabric.remote_word(region.at(before, at))?,
            end: region.word(fabric, at as usize + 8)?,
            received: region.span(fabric, at as usize + 16 + 8 * LEN, LEN)?,
        })
    }

    fn value(rank: Rank, k: u64) -> [u64; LEN] {
        core::array::from_fn(|at| k << 32 | u64::from(rank.number()) << 8 | at as u64)
    }

    async fn start(&mut self, k: u64) -> Result<()> {
        self.fabric.write(&self.sent, &Self::value(self.fabric.rank(), k))?;
        self.fabric.put_word(&self.ready, k).await?;
        self.puts.arm(k).await
    }

    /// Waits for the put from the previous rank, and executes the puts armed here while waiting.
    async fn come(&self, k: u64) -> ProgramResult<()> {
        let wait = self.fabric.wait_until(&self.end, Deps::One(self.ready.rank()), |end| end >= k);
        Triggers::of(&self.fabric).run_during(wait).await?;
        let mut here = [0; LEN];
        self.fabric.read(&self.received, &mut here)?;
        ensure_eq!(here, Self::value(self.ready.rank(), k), "P2: what is there when the word says so, {k}");
        // Zeroed, so that a second put is detected.
        self.fabric.write(&self.received, &[0; LEN])?;
        Ok(())
    }

    fn is_untouched(&self) -> Result<bool> {
        let mut here = [1; LEN];
        self.fabric.read(&self.received, &mut here)?;
        Ok(here == [0; LEN])
    }
}

pub(crate) fn polled<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => Some(out),
        Poll::Pending => None,
    }
}

/// Arms two edges and waits for them, in an order that differs between ranks; in between are a
/// barrier and a task that arms while another one waits.
pub(super) async fn puts_leave_in_whichever_wait(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 2 * EDGE as usize).await?;
    let (mut a, mut b) = (Edge::new(&fabric, &region, 0)?, Edge::new(&fabric, &region, 1)?);
    let even = fabric.rank().index().is_multiple_of(2);
    for k in 1..=12 {
        match k % 4 {
            0 => {
                // A rank that has not started yet prevents the previous one from leaving the
                // barrier's wait without having done anything.
                a.start(k).await?;
                b.start(k).await?;
                if even {
                    world.barrier().await?;
                }
                a.come(k).await?;
                b.come(k).await?;
                if !even {
                    world.barrier().await?;
                }
            }
            1 => {
                b.start(k).await?;
                let (first, then) = rdma_fabric::join::join(b.come(k), async {
                    a.start(k).await?;
                    a.come(k).await
                })
                .await;
                first.and(then)?;
            }
            _ if even == (k % 4 == 2) => {
                a.start(k).await?;
                b.start(k).await?;
                a.come(k).await?;
                b.come(k).await?;
            }
            _ => {
                b.start(k).await?;
                a.start(k).await?;
                b.come(k).await?;
                a.come(k).await?;
            }
        }
        a.puts.wait().await?;
        ensure!(
            b.puts.test().await? || {
                b.puts.wait().await?;
                b.puts.test().await?
            },
            "P1: {k} is done when waited for"
        );
        ensure!(Triggers::of(&fabric).test([&mut a.puts, &mut b.puts]).await?, "P1: {k} is done, looked at together");
    }
    world.barrier().await?;
    ensure!(a.is_untouched()? && b.is_untouched()?, "P3: put again");
    Ok(())
}

/// Drops calls at any of their waits, and repeats them.
pub(super) async fn dropped_calls_put_nothing_twice(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, EDGE as usize).await?;
    let mut edge = Edge::new(&fabric, &region, 0)?;
    for k in 1..=20 {
        if (k + fabric.rank().index() as u64).is_multiple_of(3) {
            fabric.compute(Duration::from_micros(20)).await;
        }
        edge.start(k).await?;
        // A dropped call is complete, or the next call continues it.
        for _ in 0..k % 5 {
            if let Some(waited) = polled(edge.puts.wait()) {
                waited?;
            }
            if let Some(tested) = polled(edge.puts.test()) {
                tested?;
            }
            if let Some(tested) = polled(Triggers::of(&fabric).test([&mut edge.puts])) {
                tested?;
            }
            let _ = polled(Triggers::of(&fabric).advance());
        }
        edge.come(k).await?;
        edge.puts.wait().await?;
        ensure_eq!(edge.puts.test().await, Ok(true), "P1: {k} is done when waited for");
    }
    world.barrier().await?;
    ensure!(edge.is_untouched()?, "P3: put again");
    Ok(())
}

/// A waker that counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A task that waits alongside the rank's triggers is woken when another task arms a put.
pub(super) async fn who_waits_is_woken_by_who_arms(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, EDGE as usize).await?;
    let mut edge = Edge::new(&fabric, &region, 0)?;
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut waiting = Box::pin(Triggers::of(&fabric).run_during(pending::<()>()));
    let mut poll = || waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
    ensure!(poll(), "P1: nothing ends it");
    let before = bell.0.load(Relaxed);
    edge.puts.arm(1).await?;
    ensure!(bell.0.load(Relaxed) > before, "P1: nobody was woken");
    world.barrier().await?;
    fabric.put_word(&edge.ready, 1).await?;
    fabric.flush_all().await?;
    world.barrier().await?;
    ensure!(poll(), "P1: nothing ends it");
    // If the network takes time, the put is in flight.
    drop(waiting);
    edge.puts.wait().await?;
    let end = fabric.wait_until(&edge.end, Deps::One(edge.ready.rank()), |end| end >= 1);
    Triggers::of(&fabric).run_during(end).await?;
    Ok(world.barrier().await?)
}

/// Checks that a put that is armed, and dropped before the receiver is ready, is not sent.
pub(super) async fn what_is_dropped_does_not_leave(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, EDGE as usize).await?;
    let Edge { mut puts, ready, end, .. } = Edge::new(&fabric, &region, 0)?;
    ensure!(Triggers::of(&fabric).is_idle(), "P4: nothing is armed");
    puts.arm(1).await?;
    ensure!(!Triggers::of(&fabric).is_idle(), "P4: something is armed");
    drop(puts);
    ensure!(Triggers::of(&fabric).is_idle(), "P4: it was given up");
    world.barrier().await?;
    fabric.put_word(&ready, 1).await?;
    fabric.flush_all().await?;
    world.barrier().await?;
    Triggers::of(&fabric).advance().await;
    world.barrier().await?;
    ensure_eq!(fabric.load(&end)?, 0, "P4: what was given up has left");
    Ok(())
}
