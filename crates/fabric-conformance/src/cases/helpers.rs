//! Helpers: tasks that a rank runs alongside its program.

use super::{fixture::has_queues, loss_point::ended, neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use core::{
    future::{Future, ready},
    task::{Context, Poll, Waker},
};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{
    Deps, Fabric, FabricError, ProgramResult, Rank, Region,
    join::{join, join_all},
    op::Put,
    provider::Boxed,
};
use std::{sync::Arc, time::Duration};

/// Returns whether this fabric has no helpers; if so, checks that it reports this.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if fabric.caps().helpers {
        return Ok(false);
    }
    let refusal = fabric.helper("refused", |_| async { Ok(()) });
    ensure!(matches!(refusal, Err(FabricError::Unsupported { .. })), "H1: caps() deny helpers: {refusal:?}");
    Ok(true)
}

/// Waits until a word of this rank's memory is `value`, which a helper writes, possibly after
/// actions of peers.
pub(super) async fn until(
    fabric: &Fabric,
    what: &str,
    region: &Region,
    offset: usize,
    value: u64,
) -> ProgramResult<()> {
    let word = region.word::<u64>(fabric, offset)?;
    // Includes this rank itself, so that it does not matter whether others have left.
    let all: Vec<_> = (0..fabric.ranks() as u32).map(Rank::new).collect();
    let end = ended(fabric, what, fabric.wait_until(&word, Deps::Ranks(&all), |it| it == value)).await??;
    ensure_eq!(end, value, "{what}");
    Ok(())
}

/// Runs a helper that succeeds if a peer is lost, which its rank detects as well.
async fn unless_lost(helper: impl Future<Output = ProgramResult<()>>) -> ProgramResult<()> {
    let gone = |error: &FabricError| error.gone().is_some();
    match helper.await {
        Err(error) if error.downcast_ref().is_some_and(gone) => Ok(()),
        end => end,
    }
}

pub(super) async fn helpers_are_the_same_rank(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 32).await?;
    let (me, ranks, region) = (fabric.rank(), fabric.ranks(), Arc::new(region));
    let next = Rank::new((me.number() + 1) % ranks as u32);
    let shared = Arc::clone(&region);
    let helper = move |fabric: Fabric| async move {
        ensure_eq!((fabric.rank(), fabric.ranks()), (me, ranks), "H1: another rank");
        let there = fabric.remote_word::<u64>(shared.at(next, 0))?;
        ensure_eq!(fabric.fetch_add(&there, 5).await?, 0, "H1: an atomic");
        let there = fabric.remote_span::<u64>(shared.at(next, 8), 2)?;
        fabric.put(&there, vec![6u64, 7]).await?;
        fabric.flush(next).await?;
        ensure_eq!(fabric.get(&there, vec![0u64; 2]).await?, [6, 7], "H1: what was put");
        let refused = [fabric.try_notice().map(drop), fabric.next_notice(Deps::All).await.map(drop)];
        ensure!(
            refused.iter().all(|end| matches!(end, Err(FabricError::Unsupported { .. }))),
            "H4: a notice for a helper: {refused:?}"
        );
        // A helper of a helper, which announces that both are done.
        let done = Arc::clone(&shared);
        fabric.helper("b", move |fabric| async move { Ok(fabric.store(&done.word::<u64>(&fabric, 24)?, 1)?) })?;
        Ok(())
    };
    fabric.helper("a", |fabric| unless_lost(helper(fabric)))?;
    until(&fabric, "H1: the helpers", &region, 24, 1).await?;
    world.barrier().await?;
    let mut seen = [0; 3];
    fabric.read(&region.span(&fabric, 0, 3)?, &mut seen)?;
    ensure_eq!(seen, [5u64, 6, 7], "H1: what the neighbour's helper did");
    world.barrier().await?;
    // Notices still belong to the program.
    let there = fabric.remote_span::<u64>(region.at(next, 0), 1)?;
    fabric.put_notify(&there, vec![1u64], 9).await?;
    let from = Rank::new((me.number() + ranks as u32 - 1) % ranks as u32);
    ensure_eq!(fabric.next_notice(Deps::One(from)).await?.data, 9, "H4: the program's notice");
    Ok(world.barrier().await?)
}

pub(super) async fn helpers_compute_beside_the_program(fabric: Fabric) -> ProgramResult<()> {
    const LONG: Duration = Duration::from_secs(3600);
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let region = Arc::new(region);
    let (begin, shared) = (fabric.now(), Arc::clone(&region));
    fabric.helper("computes", move |fabric| async move {
        let begun = fabric.now();
        ensure!(begun >= begin, "H2: it began before it was started");
        fabric.compute(LONG).await;
        let took = fabric.now().picos_since(begun);
        fabric.store(&shared.word::<u64>(&fabric, 8)?, took)?;
        fabric.store(&shared.word::<u64>(&fabric, 0)?, 1)?;
        Ok(())
    })?;
    fabric.compute(LONG).await;
    let virtual_time = fabric.now() >= begin + LONG;
    let word = region.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&word, Deps::One(fabric.rank()), |done| done == 1).await?;
    let took = Duration::from_nanos(fabric.load(&region.word::<u64>(&fabric, 8)?)? / 1000);
    ensure!((took >= LONG) == virtual_time, "H2: the helper computed for {took:?}");
    ensure!(fabric.now() < begin + LONG + LONG / 2, "H2: program and helper computed one after the other");
    Ok(world.barrier().await?)
}

/// A future that the program has started, and that its helper completes.
type Begun = Boxed<'static, ProgramResult<u64>>;

pub(super) async fn futures_are_handed_on(fabric: Fabric) -> ProgramResult<()> {
    const LATER: Duration = Duration::from_micros(50);
    let (mut world, region) = world_and_region(&fabric, 128).await?;
    let (region, next) = (Arc::new(region), Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32));
    let word = |offset| fabric.remote_word::<u64>(region.at(next, offset));
    let (put, one, two, added) = (fabric.remote_span::<u64>(region.at(next, 0), 4)?, word(40)?, word(48)?, word(56)?);
    let [f, g, h, i, j] = [(); 5].map(|()| fabric.clone());
    let asleep = fabric.now() + LATER;
    let begun: [Begun; 5] = [
        Box::pin(async move {
            let posted = f.post(Put { to: &put, from: vec![1u64, 2, 3, 4], notice: None }).await?;
            let (posted, flushed) = join(posted, f.flush(put.rank())).await;
            posted.and(flushed)?;
            Ok(f.get(&put, vec![0; 4]).await?.into_iter().sum())
        }),
        Box::pin(async move {
            let posted = g.post(Put { to: &one.as_span(), from: vec![7u64], notice: None }).await?;
            let (posted, flushed) = join(posted, g.flush_all()).await;
            posted.and(flushed)?;
            Ok(g.get_word(&one).await?)
        }),
        Box::pin(async move { Ok(h.get_word(&two).await?) }),
        Box::pin(async move { Ok(i.fetch_add(&added, 3).await?) }),
        Box::pin(async move {
            j.sleep_until(asleep).await;
            Ok(u64::from(j.now() >= asleep))
        }),
    ];
    // Each is polled once, by a task without a waker.
    let begun = begun.map(|mut future| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => Box::pin(ready(end)),
        Poll::Pending => future,
    });
    let shared = Arc::clone(&region);
    let ending = move |fabric: Fabric| async move {
        let mut ends = [0; 5];
        for (end, future) in ends.iter_mut().zip(join_all(begun).await) {
            *end = future?;
        }
        ensure_eq!(ends, [10, 7, 0, 0, 1], "H7: what the helper got");
        Ok(fabric.store(&shared.word::<u64>(&fabric, 64)?, 1)?)
    };
    fabric.helper("ends what was begun", |fabric| unless_lost(ending(fabric)))?;
    until(&fabric, "H7: the helper's end", &region, 64, 1).await?;
    world.barrier().await?;
    let mut seen = [0; 8];
    fabric.read(&region.span(&fabric, 0, 8)?, &mut seen)?;
    ensure_eq!(seen, [1u64, 2, 3, 4, 0, 7, 0, 3], "H7: what the neighbour began");
    Ok(world.barrier().await?)
}

/// Writes `value` to a word of this rank, in one of the possible ways.
async fn write(fabric: &Fabric, region: &Region, offset: usize, value: u64) -> ProgramResult<()> {
    let word = fabric.remote_word::<u64>(region.at(fabric.rank(), offset as u64))?;
    match value % 5 {
        0 => fabric.store(&region.word::<u64>(fabric, offset)?, value)?,
        1 => fabric.put_word(&word, value).await?,
        2 => drop(fabric.fetch_add(&word, 1).await?),
        3 => drop(fabric.put(&word.as_span(), vec![value]).await?),
        _ => fabric.write(&region.span(fabric, offset, 1)?, &[value])?,
    }
    Ok(())
}

pub(super) async fn program_and_helper_wake_each_other(fabric: Fabric) -> ProgramResult<()> {
    const ROUNDS: u64 = 200;
    let (mut world, region) = world_and_region(&fabric, 128).await?;
    let region = Arc::new(region);
    let shared = Arc::clone(&region);
    fabric.helper("answers", move |fabric| async move {
        let asked = shared.word::<u64>(&fabric, 0)?;
        for round in 1..=ROUNDS {
            fabric.wait_until(&asked, Deps::One(fabric.rank()), |it| it == round).await?;
            // Occasionally lets the program fall asleep.
            if round % 40 == 7 {
                fabric.sleep(Duration::from_millis(1)).await;
            }
            write(&fabric, &shared, 64, round).await?;
        }
        Ok(())
    })?;
    for round in 1..=ROUNDS {
        if round % 40 == 20 {
            fabric.sleep(Duration::from_millis(1)).await;
        }
        write(&fabric, &region, 0, round).await?;
        until(&fabric, "H3: the helper's answer", &region, 64, round).await?;
    }
    Ok(world.barrier().await?)
}

pub(super) async fn helpers_are_woken_by_peers(fabric: Fabric) -> ProgramResult<()> {
    const ROUNDS: u64 = 100;
    let (mut world, region) = world_and_region(&fabric, 128).await?;
    let region = Arc::new(region);
    let (next, shared) = (Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32), Arc::clone(&region));
    // The helpers pass a count around the ring; the programs wait for the end.
    let helper = move |fabric: Fabric| async move {
        let (mine, theirs) = (shared.word::<u64>(&fabric, 0)?, fabric.remote_word::<u64>(shared.at(next, 0))?);
        let first = fabric.rank() == Rank::new(0);
        for round in 1..=ROUNDS {
            if first {
                fabric.put_word(&theirs, round).await?;
            }
            fabric.wait_until(&mine, Deps::All, |it| it == round).await?;
            if !first {
                fabric.put_word(&theirs, round).await?;
            }
        }
        fabric.flush(next).await?;
        fabric.store(&shared.word::<u64>(&fabric, 64)?, 1)?;
        Ok(())
    };
    fabric.helper("passes on", |fabric| unless_lost(helper(fabric)))?;
    until(&fabric, "H3: the helpers' count", &region, 64, 1).await?;
    Ok(world.barrier().await?)
}

pub(super) async fn queues_of_helpers(fabric: Fabric) -> ProgramResult<()> {
    if !has_queues(&fabric)? {
        return Ok(());
    }
    const COMMANDS: u64 = 20;
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let (peer, region) = (neighbour(&fabric), Arc::new(region));
    let shared = Arc::clone(&region);
    let helper = move |fabric: Fabric| async move {
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let at = queue.register(&shared)?;
        let [id, stadd] = [8, 16].map(|at| fabric.remote_word::<u64>(shared.at(peer, at)));
        fabric.put_word(&stadd?, at.to_bits()).await?;
        fabric.flush(peer).await?;
        fabric.put_word(&id?, queue.id().to_bits() + 1).await?;
        let theirs = shared.word::<u64>(&fabric, 8)?;
        let theirs = fabric.wait_until(&theirs, Deps::One(peer), |id| id != 0).await?;
        let theirs = QueueId::from_bits(theirs - 1).ok_or("Q1: bits that are no queue's")?;
        let their_at = Stadd::from_bits(fabric.load(&shared.word::<u64>(&fabric, 16)?)?);
        for number in 1..=COMMANDS {
            let put = Command::PutInline { to: theirs, bytes: Inline::word(number), at: their_at + 24 };
            queue.post(Posting::new(put).remote(number as u8), Deps::One(peer)).await?;
            let notice = queue.next_notice(Deps::One(peer)).await?;
            ensure_eq!(u64::from(notice.edata), number, "H4: the helper's MRQ");
        }
        fabric.store(&shared.word::<u64>(&fabric, 32)?, 1)?;
        // The queue also stays open until the peer is done.
        std::future::pending().await
    };
    fabric.helper("queue", |fabric| unless_lost(helper(fabric)))?;
    until(&fabric, "H4: a helper's queue", &region, 32, 1).await?;
    ensure_eq!(fabric.load(&region.word::<u64>(&fabric, 24)?)?, COMMANDS, "H4: what the peer's helper put");
    Ok(world.barrier().await?)
}
