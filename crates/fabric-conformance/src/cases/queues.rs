//! Control queues: the sentences of the contract that hold in all modes.

use super::commands::inline;
use super::fixture::{Fixture, TAG, has_queues, queue_error};
use crate::{ensure, ensure_eq};
use fabric_offload::{
    ControlQueue,
    control_queue::{Blocks, Command, MrqKind, MrqNotice, Posting, QueueError, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Refused};

pub(super) const NORMAL: QueueSpec = QueueSpec::new(QueueMode::Normal);

pub(super) async fn opening(fabric: Fabric) -> ProgramResult<()> {
    if !has_queues(&fabric)? {
        return Ok(());
    }
    let limits = ControlQueue::limits(&fabric);
    let engine = limits.engines - 1;
    let spec = QueueSpec { number: Some(3), ..QueueSpec::new(QueueMode::Session).on(engine).depth(64) };
    let queue = ControlQueue::open(&fabric, spec)?;
    let id = queue.id();
    ensure_eq!((id.rank(), id.engine(), id.number()), (fabric.rank(), engine, 3), "Q1: the queue asked for");
    ensure_eq!(queue.spec().depth, 64, "Q1: slots asked for");
    ensure!(ControlQueue::limits(&fabric).free < limits.free, "Q1: free queues after one was opened");
    let again = ControlQueue::open(&fabric, spec).err();
    ensure!(matches!(queue_error(&again), Some(QueueError::InUse(_))), "Q1: opened twice: {again:?}");
    for wrong in [spec.depth(100), spec.depth(0), spec.on(limits.engines), QueueSpec { mrq_depth: 3, ..spec }] {
        let refused = ControlQueue::open(&fabric, wrong).err();
        ensure!(matches!(queue_error(&refused), Some(QueueError::Limit { .. })), "Q1: {wrong:?}: {refused:?}");
    }
    ensure_eq!(queue.close()?, 0, "Q1: commands of a queue that never had any");
    // The ID now refers to no queue, and may later refer to another one; closed queues become free
    // again.
    let sender = ControlQueue::open(&fabric, NORMAL)?;
    sender.post(Posting::new(inline(id, Stadd::fixed(TAG), 1)).local(1), Deps::All).await?;
    let status = sender.next_notice(Deps::All).await?.status;
    ensure_eq!(status, Err(QueueError::NotOpen(id)), "Q1: a put to a queue that was closed");
    drop(sender);
    let mut all = Vec::new();
    let session = QueueSpec { number: None, engine: None, ..spec };
    let full = loop {
        match ControlQueue::open(&fabric, session) {
            Ok(queue) => all.push(queue),
            Err(error) => break error,
        }
        ensure!(all.len() <= 1000, "Q1: no end of queues");
    };
    ensure!(
        matches!(&full, FabricError::Queue(error) if matches!(**error, QueueError::NoneFree(_))),
        "Q1: {} opened, then {full}",
        all.len()
    );
    drop(all);
    ensure_eq!(ControlQueue::limits(&fabric).free, limits.free, "Q1: free queues after all were closed");
    Ok(())
}

pub(super) async fn completions_in_posting_order(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, NORMAL, 64).await? else { return Ok(()) };
    for round in 1..=20u64 {
        let put =
            Posting::new(inline(fixture.next(), fixture.at, round)).tcq(100 + round).local(round as u8).strong_order();
        fixture.queue.post(put, Deps::All).await?;
    }
    for round in 1..=20u64 {
        let done = fixture.queue.next_completion(Deps::All).await?;
        ensure_eq!((done.tag, done.status), (100 + round, Ok(())), "Q2: completion {round}");
    }
    for _ in 1..=20u64 {
        let notice = fixture.queue.next_notice(Deps::All).await?;
        ensure_eq!((notice.kind, notice.status), (MrqKind::LocalPut, Ok(())), "Q3");
    }
    fixture.until(0, 20).await?;
    ensure_eq!(fixture.queue.poll_tcq()?, None, "Q2: a completion too many");
    ensure_eq!(fixture.queue.poll_mrq()?, None, "Q3: a notice too many");
    let pointers = fixture.queue.pointers();
    ensure_eq!((pointers.read, pointers.write), (20, 20), "Q2: slots of 20 commands");
    fixture.leave().await
}

pub(super) async fn a_full_ring(fabric: Fabric) -> ProgramResult<()> {
    let spec = QueueSpec::new(QueueMode::Session).depth(16);
    let Some(fixture) = Fixture::open(fabric, spec, 64).await? else { return Ok(()) };
    let nop = Posting::new(Command::Nop).tcq(0);
    for i in 0..15 {
        ensure!(fixture.queue.try_post(nop).is_ok(), "Q4: command {i} of 15");
    }
    let full = fixture.queue.try_post(nop);
    ensure!(matches!(full, Err(Refused::Full(()))), "Q4: into a full ring: {full:?}");
    let long = Command::Put {
        to: fixture.own(),
        from: fixture.at,
        at: fixture.at,
        len: 1,
        blocks: Blocks { count: 16, stride: 2 },
    };
    let never = fixture.queue.try_post(long.into());
    ensure!(matches!(never, Err(Refused::Failed(..))), "Q4: more slots than a ring has: {never:?}");
    ensure_eq!(fixture.completed().await?, 0, "S1: without credit");
    // Wait for room while credit arrives.
    let (waiting, credited) =
        rdma_fabric::join::join(fixture.queue.post(nop, Deps::All), fixture.credit(fixture.own(), 3)).await;
    waiting?;
    ensure_eq!(credited?, Ok(()), "S4");
    ensure_eq!(fixture.completed().await?, 3, "Q4: after three slots of credit");
    ensure_eq!(fixture.queue.pointers().write, 16, "Q4: the command that waited");
    fixture.leave().await
}

pub(super) async fn delayed_starts(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, NORMAL.depth(16), 64).await? else { return Ok(()) };
    let nop = Posting::new(Command::Nop);
    for tag in 0..3 {
        fixture.queue.post(nop.tcq(tag).delayed(), Deps::All).await?;
    }
    ensure_eq!(fixture.completed().await?, 0, "Q7: before a start");
    fixture.queue.post(nop.tcq(3), Deps::All).await?;
    for tag in 0..4 {
        ensure_eq!(fixture.queue.next_completion(Deps::All).await?.tag, tag, "Q7: started together, in order");
    }
    // A ring full of delayed commands stays full.
    for _ in 0..15 {
        ensure!(fixture.queue.try_post(nop.delayed()).is_ok(), "Q7: room for 15");
    }
    ensure!(
        matches!(fixture.queue.try_post(nop), Err(Refused::Full(()))),
        "Q7: a start into a ring full of delayed ones"
    );
    ensure_eq!(fixture.queue.pointers().read, 4, "Q7: what was executed");
    fixture.leave().await
}

pub(super) async fn a_flag_after_its_data(fabric: Fabric) -> ProgramResult<()> {
    const BYTES: usize = 1 << 16;
    let Some(mut fixture) = Fixture::open(fabric, NORMAL, BYTES + 64).await? else { return Ok(()) };
    for round in 1..=10u64 {
        fixture.world.barrier().await?;
        if fixture.me() == 0 {
            let data = fixture.region.span::<u64>(&fixture.fabric, 0, BYTES / 8)?;
            fixture.fabric.write(&data, &vec![round; BYTES / 8])?;
            let put = Posting::new(Command::put(fixture.next(), fixture.at, fixture.at, BYTES as u32)).strong_order();
            fixture.queue.post(put, Deps::All).await?;
            let flag = Posting::new(inline(fixture.next(), fixture.at + BYTES as u64, round)).strong_order().local(0);
            fixture.queue.post(flag, Deps::All).await?;
            ensure_eq!(fixture.queue.next_notice(Deps::All).await?.status, Ok(()), "Q8");
        } else if fixture.me() == 1 {
            fixture.until(BYTES, round).await?;
            let mut bytes = vec![0u64; BYTES / 8];
            fixture.fabric.read(&fixture.region.span::<u64>(&fixture.fabric, 0, BYTES / 8)?, &mut bytes)?;
            ensure!(bytes.iter().all(|word| *word == round), "Q8: a flag before its data in round {round}");
        }
    }
    fixture.leave().await
}

pub(super) async fn too_many_notices(fabric: Fabric) -> ProgramResult<()> {
    let spec = QueueSpec { mrq_depth: 8, ..NORMAL };
    let Some(mut fixture) = Fixture::open(fabric, spec, 64).await? else { return Ok(()) };
    if fixture.me() == 0 {
        for edata in 0..20 {
            let put = Posting::new(inline(fixture.next(), fixture.at, 1)).remote(edata);
            fixture.sender.post(put, Deps::All).await?;
        }
        fixture.settle().await;
    }
    fixture.world.barrier().await?;
    fixture.settle().await;
    if fixture.me() == 1 {
        let mut taken: Vec<MrqNotice> = Vec::new();
        let end = loop {
            match fixture.queue.poll_mrq() {
                Ok(Some(notice)) => taken.push(notice),
                Ok(None) => return Err("Q9: notices were lost in silence".into()),
                Err(error) => break error,
            }
            ensure!(taken.len() <= 8, "Q9: more notices than entries");
        };
        let overflow = QueueError::MrqOverflow { queue: fixture.own(), depth: 8 };
        ensure_eq!(end, overflow.into(), "Q9: after {} notices", taken.len());
        ensure!(taken.iter().enumerate().all(|(i, n)| usize::from(n.edata) == i), "Q9: out of order: {taken:?}");
        let stopped = fixture.queue.try_post(Command::Nop.into());
        ensure!(matches!(stopped, Err(Refused::Failed(..))), "Q9: posting to a queue that stopped: {stopped:?}");
    }
    fixture.leave().await
}
