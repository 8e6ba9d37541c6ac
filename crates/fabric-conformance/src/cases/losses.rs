//! The loss of a rank, always the last one, as seen by the other ranks.

use super::{
    blocks::put_blocks,
    fixture::Fixture,
    loss_point::{LossPoint, ended, is_gone, lost, meet, notice_the_loss, others, victim},
    world_and_region,
};
use crate::{Loss, ensure, ensure_eq};
use fabric_offload::triggered::{Transfer, TriggeredPut, TriggeredPuts};
use rdma_fabric::{
    Amo, Blocks, Deps, Fabric, FabricError, Group, ProgramResult, Rank, Refused,
    control_queue::{Command, Inline, Posting, QueueError, QueueMode, QueueSpec},
    op::{Atomic, Put},
};
use std::time::Duration;

pub(super) async fn waits_end(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    point.reached(loss).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    let some = [me, last];
    // The lost rank is not the writer but a member of its group.
    let other = Rank::new((me.number() + 1) % last.number());
    let step = |group| Deps::Step { writer: other, group };
    let all = [Deps::One(last), Deps::Ranks(&some), Deps::All, step(None), step(Some(&some))];
    let first = me.index() % all.len();
    // Each rank is in a different one of these waits when the loss happens; it begins the others
    // afterwards.
    for turn in 0..2 * all.len() {
        let deps = all[(first + turn) % all.len()];
        let end = if (turn + turn / all.len() + me.index() / 3) % 2 == 0 {
            ended(&fabric, "W3: a wait", fabric.wait_until(&word, deps, |v| v == 1)).await?.map(drop)
        } else {
            ended(&fabric, "W3: a notice", fabric.next_notice(deps)).await?.map(drop)
        };
        ensure_eq!(end, lost(last), "W3: turn {turn}, waiting for {deps:?}");
    }
    Ok(())
}

pub(super) async fn waits_for_others_go_on(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    point.reached(loss).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    if me == Rank::new(0) {
        notice_the_loss(&fabric).await?;
        fabric.sleep(Duration::from_millis(2)).await;
        for rank in 1..last.number() {
            fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(rank), 0))?, 3).await?;
            fabric.flush(Rank::new(rank)).await?;
        }
    } else {
        let end = ended(&fabric, "W3", fabric.wait_until(&word, Deps::One(Rank::new(0)), |v| v == 3)).await?;
        ensure_eq!(end, Ok(3), "W3: a wait for another rank");
    }
    meet(others).await
}

/// Only the owner of an armed put that waits for the lost rank receives the error.
pub(super) async fn triggered_puts_end(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    if me == last {
        return point.reached(loss).await;
    }
    let mut others = others.ok_or("the lost rank is here")?;
    let to = fabric.remote_word(region.at(last, 8))?;
    let put = TriggeredPut::new(vec![region.word(&fabric, 0)?], Transfer::empty(), to);
    let mut puts = TriggeredPuts::new(&fabric, vec![put], &[last]);
    puts.arm(1).await?;
    point.ready().await?;
    for turn in 0..3 {
        let end = ended(&fabric, "P5: a barrier of the others", others.barrier()).await?;
        ensure_eq!(end, Ok(()), "P5: barrier {turn} beside what is armed");
        fabric.sleep(Duration::from_micros(500)).await;
    }
    let told = ended(&fabric, "P5: the owner's wait", puts.wait()).await?;
    ensure_eq!(told, lost(last), "P5: what the owner is told");
    ensure_eq!(puts.test().await, lost(last), "P5: it stays so");
    meet(Some(others)).await
}

pub(super) async fn a_satisfied_wait_still_ends_well(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let word = region.word::<u64>(&fabric, 0)?;
    if me == last {
        for rank in 0..last.number() {
            fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(rank), 0))?, 7).await?;
        }
    }
    point.reached(loss).await?;
    // Writes that the lost rank made visible count, even if the wait begins after its loss.
    if me.index() % 2 == 1 {
        notice_the_loss(&fabric).await?;
    }
    for deps in [Deps::One(last), Deps::All] {
        let end = ended(&fabric, "W4", fabric.wait_until(&word, deps, |v| v == 7)).await?;
        ensure_eq!(end, Ok(7), "W4, E3: with {deps:?}");
    }
    notice_the_loss(&fabric).await?;
    ensure_eq!(fabric.wait_until(&word, Deps::All, |v| v == 7).await, Ok(7), "W4: after the loss");
    Ok(())
}

pub(super) async fn notices_still_arrive(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    // Fewer than any queue holds, because no rank takes them before the loss.
    const EACH: u64 = 8;
    let region = fabric.alloc_symmetric(8).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    if me == last {
        for rank in 0..last.number() {
            let to = fabric.remote_span::<u64>(region.at(Rank::new(rank), 0), 1)?;
            for i in 0..EACH {
                fabric.put_notify(&to, [i], i).await?;
            }
        }
    }
    point.reached(loss).await?;
    notice_the_loss(&fabric).await?;
    for i in 0..EACH {
        let notice = ended(&fabric, "E3", fabric.next_notice(Deps::One(last))).await?;
        ensure_eq!(notice.map(|notice| notice.data), Ok(i), "E3: notices of a rank that is lost");
    }
    let end = ended(&fabric, "W3", fabric.next_notice(Deps::One(last))).await?;
    ensure_eq!(end, lost(last), "W3: no more will come");
    Ok(())
}

pub(super) async fn nothing_comes_after_a_loss(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    const LONG: usize = 512;
    let point = LossPoint::new(&fabric).await?;
    let region = fabric.alloc_symmetric(8 * (2 + LONG)).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    if me == last {
        point.others_ready().await?;
        for rank in (0..last.number()).map(Rank::new) {
            let word = fabric.remote_word::<u64>(region.at(rank, 0))?;
            drop(fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?);
            fabric.put_word(&fabric.remote_word::<u64>(region.at(rank, 8))?, 1).await?;
            let long = fabric.remote_span::<u64>(region.at(rank, 16), LONG)?;
            fabric.put_notify(&long, vec![1u64; LONG], 1).await?;
        }
        return loss.happen();
    }
    point.ready().await?;
    notice_the_loss(&fabric).await?;
    let span = region.span::<u64>(&fabric, 0, 2 + LONG)?;
    let mut looks = [(); 2].map(|()| (vec![0; 2 + LONG], 0));
    for (i, (words, notices)) in looks.iter_mut().enumerate() {
        if i > 0 {
            fabric.sleep(Duration::from_millis(2)).await;
        }
        fabric.read(&span, words)?;
        while fabric.try_notice()?.is_some() {
            *notices += 1;
        }
    }
    let [before, after] = [0, 1].map(|i| looks[i].0.iter().sum::<u64>());
    ensure_eq!(after, before, "E4: words that came after the loss was known");
    ensure_eq!(looks[1].1, 0, "E4: notices that came after the loss was known");
    Ok(())
}

pub(super) async fn operations_fail(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let last = victim(&fabric);
    let others = others(&mut world).await?;
    let word = fabric.remote_word::<u64>(region.at(last, 0))?;
    let span = fabric.remote_span::<u32>(region.at(last, 8), 4)?;
    let own = region.span::<u32>(&fabric, 8, 3)?;
    point.reached(loss).await?;
    notice_the_loss(&fabric).await?;
    let mut all = vec![
        fabric.fetch_add(&word, 1).await.map(drop),
        fabric.compare_swap(&word, 0, 1).await.map(drop),
        fabric.get_word(&word).await.map(drop),
        fabric.put_word(&word, 1).await,
        fabric.put(&span, [1u32; 4]).await.map(drop),
        fabric.put(&span.slice(0..2)?, vec![1u32; 2]).await.map(drop),
        fabric.put_notify(&span, [1u32; 4], 3).await.map(drop),
        put_blocks(&fabric, &span.slice(0..3)?, &own, 1, Blocks { count: 2, stride: 8 }).await,
        fabric.get(&span, vec![0u32; 4]).await.map(drop),
        fabric.remote_word::<u64>(region.at(last, 0)).map(drop),
        fabric.remote_span::<u8>(region.at(last, 0), 1).map(drop),
        fabric.flush(last).await,
        ended(&fabric, "E2: room", fabric.room(Some(last))).await?,
    ];
    match fabric.try_post(Put { to: &span, from: [5u32; 4], notice: None }) {
        Ok(handle) => all.push(handle.await.map(drop)),
        Err(Refused::Failed(error, put)) => {
            ensure_eq!(put.from, [5; 4], "O1: the put comes back");
            all.push(Err(error));
        }
        Err(Refused::Full(_)) => return Err("E2: full".into()),
    }
    for (i, end) in all.into_iter().enumerate() {
        ensure_eq!(end, lost(last), "E2: use {i} of a lost rank");
    }
    // All other ranks remain reachable.
    for rank in 0..last.number() {
        fabric.fetch_add(&fabric.remote_word::<u64>(region.at(Rank::new(rank), 0))?, 1).await?;
        fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(rank), 8))?, 1).await?;
        fabric.flush(Rank::new(rank)).await?;
    }
    fabric.flush_all().await?;
    meet(others).await
}

pub(super) async fn posting_into_a_full_queue(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let last = victim(&fabric);
    let to = fabric.remote_span::<u64>(region.at(last, 0), 1)?;
    point.reached(loss).await?;
    let mut posted = 0u64;
    let post = async {
        loop {
            match fabric.put_notify(&to, [posted], 1).await {
                Ok(_) => posted += 1,
                Err(error) => return error,
            }
        }
    };
    let end = ended(&fabric, "E2: room in a lost rank's queue", post).await?;
    ensure!(is_gone(&fabric, loss, &Err::<(), _>(end.clone())), "E2: after {posted} notices: {end}");
    Ok(())
}

pub(super) async fn control_queues(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let spec = QueueSpec::new(QueueMode::Session);
    let Some(mut fixture) = Fixture::open(fabric.clone(), spec, 64).await? else {
        // Without queues, only the loss can be observed.
        let mut world = Group::world(&fabric).await?;
        let others = others(&mut world).await?;
        point.reached(loss).await?;
        notice_the_loss(&fabric).await?;
        return meet(others).await;
    };
    let others = others(&mut fixture.world).await?;
    let gone = victim(&fabric);
    point.reached(loss).await?;
    let end = ended(&fabric, "Q10: waiting for a notice", fixture.queue.next_notice(Deps::One(gone))).await?;
    ensure_eq!(end, lost(gone), "Q10: a wait for a notice of the lost rank");
    let end = ended(&fabric, "Q10: waiting for a completion", fixture.queue.next_completion(Deps::One(gone))).await?;
    ensure_eq!(end, lost(gone), "Q10: a wait for a completion that the lost rank would release");
    let to = fixture.ids[gone.index()];
    let put = Posting::new(Command::PutInline { to, bytes: Inline::word(1), at: fixture.at }).sps(1).local(1);
    let end = match fixture.sender.try_post(put) {
        Ok(()) => {
            let notice =
                ended(&fabric, "Q10: the notice of a put", fixture.sender.next_notice(Deps::Ranks(&[]))).await?;
            notice?.status.err()
        }
        Err(Refused::Failed(FabricError::Queue(error), ())) => Some(*error),
        other => return Err(format!("Q10: a put to the lost rank: {other:?}").into()),
    };
    let told = match end {
        Some(QueueError::PeerLost(queue)) => queue == to,
        Some(QueueError::NotOpen(queue)) => queue == to && loss != Loss::Kill,
        _ => false,
    };
    ensure!(told, "Q10: a put to the lost rank ended with {end:?}");
    meet(others).await
}
