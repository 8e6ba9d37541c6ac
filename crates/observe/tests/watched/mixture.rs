//! A program that executes some operations of every kind, and its records.

use fabric_offload::{
    ControlQueue,
    barrier::Barrier,
    control_queue::{Command, Posting, QueueMode, QueueSpec},
};
use observe::{EventKind, Recorder, observed};
use rdma_fabric::{AccessPolicy, Deps, Fabric, Group, ProgramResult, Rank, join::join};
use std::time::Duration;

/// Executes some operations of every kind.
async fn play(fabric: &Fabric) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let (me, region) = (fabric.rank(), fabric.alloc_symmetric(256).await?);
    let other = Rank::new(me.number() ^ 1);
    let mine = region.word::<u64>(fabric, 0)?;
    let theirs = fabric.remote_word::<u64>(region.at(other, 0))?;
    let span = fabric.remote_span::<u64>(region.at(other, 64), 4)?;
    for round in 0..3 {
        fabric.put(&span, [round; 4]).await?;
        fabric.flush(other).await?;
        fabric.put_word(&theirs, round + 1).await?;
        fabric.wait_until(&mine, Deps::One(other), |seen| seen > round).await?;
        fabric.put_notify(&span, vec![round; 4], round).await?;
        fabric.next_notice(Deps::One(other)).await?;
        world.barrier().await?;
        fabric.get(&span, [0; 4]).await?;
    }
    let word = fabric.remote_word::<u64>(region.at(other, 8))?;
    fabric.fetch_or(&word, 3).await?;
    fabric.compare_swap(&word, 3, 4).await?;
    let own = fabric.remote_span::<u64>(region.at(me, 128), 1)?;
    let (noticed, put) = join(fabric.next_notice(Deps::All), fabric.put_notify(&own, [1], 1)).await;
    assert_eq!((noticed?.data, put?), (1, [1]));
    assert!(fabric.try_notice()?.is_none());
    fabric.compute(Duration::from_micros(1)).await;
    fabric.sleep_until(fabric.now() + Duration::from_micros(20)).await;
    let locked = fabric.protected(AccessPolicy::copies([1, 2]))?;
    let hidden = locked.alloc_symmetric(8).await?;
    locked.put_word(&locked.remote_word::<u64>(hidden.at(other, 0))?, 1).await?;
    let queue = ControlQueue::open(fabric, QueueSpec::new(QueueMode::Normal))?;
    queue.post_all(&[Posting::new(Command::Nop); 3], Deps::All).await?;
    queue
        .try_post(Posting { tcq_notice: true, ..Posting::new(Command::Nop) })
        .map_err(|refused| format!("{refused:?}"))?;
    queue.next_completion(Deps::All).await?;
    queue.close()?;
    let mut barrier = Barrier::new(&mut world).await?;
    barrier.start()?;
    barrier.wait().await?;
    drop(barrier);
    world.barrier().await?;
    Ok(())
}

async fn noted(fabric: Fabric) -> ProgramResult<Recorder> {
    let recorder = Recorder::new(fabric.rank(), Some(10_000));
    play(&observed(&fabric, recorder.clone())).await?;
    Ok(recorder)
}

/// Returns the kinds of all events except waits for room: whether a command has to wait for room
/// depends on the run.
fn kinds(recorder: &Recorder) -> Vec<EventKind> {
    let record = recorder.record();
    let events = record.events.iter().flat_map(|events| events.iter());
    events.map(|event| event.kind).filter(|kind| *kind != EventKind::WaitRoom).collect()
}

#[test]
fn some_of_everything_is_noted() {
    for recorder in checks::jobs::threads(2).segment_bytes(1 << 20).run(&noted).unwrap() {
        let kinds = kinds(&recorder);
        for kind in [
            EventKind::Put,
            EventKind::PutNotify,
            EventKind::Get,
            EventKind::CompareSwap,
            EventKind::Notice,
            EventKind::Nop,
        ] {
            assert!(kinds.contains(&kind), "{kind:?} is missing among {kinds:?}");
        }
        assert!(recorder.record().counts.total().puts > 10, "{:?}", recorder.record().counts);
    }
}
