//! Ranks under Tokio: every kind of wait, on both of its runtimes, alongside blocking calls.

use onesided::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank,
    op::Put,
    prdma::{Buffer, Form, Layout, Options, Point, points_init},
    sim::shm::Threads,
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::runtime::{Builder, Runtime};

/// Runs `rank` on `ranks` ranks that are threads, each with its own runtime, once for each kind of
/// runtime.
fn on_both_runtimes<Fut>(ranks: usize, rank: impl Fn(Fabric) -> Fut + Sync) -> Result<(), onesided::sim::JobError>
where
    Fut: Future<Output = ProgramResult<()>>,
{
    let kinds: [fn() -> std::io::Result<Runtime>; 2] = [
        || Builder::new_current_thread().enable_time().build(),
        || Builder::new_multi_thread().worker_threads(2).enable_time().build(),
    ];
    for kind in kinds {
        Threads::new(ranks).segment_bytes(1 << 20).run_with(|fabric| {
            let guarded = async { tokio::time::timeout(Duration::from_secs(20), rank(fabric)).await };
            // A hang becomes an error with this message.
            kind()?.block_on(guarded).unwrap_or_else(|_| Err("nothing happened for 20 s".into()))
        })?;
    }
    Ok(())
}

fn peer(fabric: &Fabric) -> Rank {
    Rank::new(1 - fabric.rank().number())
}

#[test]
fn words_and_notices_wake_tasks() {
    let ping_pong = |fabric: Fabric| async move {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(64).await?;
        let word = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
        let theirs = fabric.remote_span::<u64>(region.at(peer(&fabric), 0), 1)?;
        for round in 1..=200u64 {
            // Occasionally long enough for the peer to fall asleep.
            if round % 20 == 0 && fabric.rank() == Rank::new(0) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            fabric.put_notify(&theirs, vec![round], round).await?;
            if round % 2 == 0 {
                fabric.wait_until(&word, Deps::All, |value| value >= round).await?;
            }
            let notice = fabric.next_notice(Deps::All).await?;
            assert_eq!(notice.data, round);
        }
        Ok(world.barrier().await?)
    };
    on_both_runtimes(2, ping_pong).unwrap();
}

#[test]
fn many_tasks_of_one_rank_wait_at_once() {
    const TASKS: u64 = 50;
    let mailboxes = |fabric: Fabric| async move {
        let mut world = Group::world(&fabric).await?;
        let region = Arc::new(fabric.alloc_symmetric(8 * TASKS as usize).await?);
        let mut tasks = Vec::new();
        for task in 0..TASKS {
            let (fabric, region) = (fabric.clone(), region.clone());
            tasks.push(tokio::spawn(async move {
                let mine = fabric.local_word::<u64>(region.at(fabric.rank(), 8 * task))?;
                let theirs = fabric.remote_word::<u64>(region.at(peer(&fabric), 8 * task))?;
                for round in 1..=20 {
                    fabric.fetch_add(&theirs, 1).await?;
                    fabric.wait_until(&mine, Deps::All, |value| value >= round).await?;
                }
                Ok::<_, FabricError>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(world.barrier().await?)
    };
    on_both_runtimes(2, mailboxes).unwrap();
}

/// Puts that one task arms are issued in the wait of another that was already asleep.
#[test]
fn a_tasks_wait_sends_what_another_task_started() {
    let two_requests = |fabric: Fabric| async move {
        let mut world = Group::world(&fabric).await?;
        let buffers: Vec<Buffer<u64>> = (0..4).map(|_| Buffer::new(&fabric, 1)).collect::<Result<_, _>>()?;
        let peer = peer(&fabric).index();
        let whole = Layout::contiguous::<u64>(0, 1)?;
        let point = |tag: u32, place: usize| Point::new(peer, tag, &buffers[place], whole);
        let (sends, receives) = (vec![point(0, 0), point(1, 1)], vec![point(0, 2), point(1, 3)]);
        let options = Options::form(Form::Cpu);
        let (mut sends, mut receives) = points_init(&mut world, sends, receives, &options).await?;
        let (mut send_b, mut receive_b) = (sends.pop().ok_or("two")?, receives.pop().ok_or("two")?);
        let (mut send_a, mut receive_a) = (sends.pop().ok_or("one")?, receives.pop().ok_or("one")?);
        if fabric.rank() == Rank::new(0) {
            send_b.start().await?;
            receive_b.start().await?;
            let waits = tokio::spawn(async move {
                receive_b.wait().await?;
                send_b.wait().await
            });
            tokio::time::sleep(Duration::from_millis(5)).await;
            send_a.start().await?;
            receive_a.start().await?;
            // This task makes no call until the other one has ended.
            waits.await??;
        } else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            send_a.start().await?;
            receive_a.start().await?;
            receive_a.wait().await?;
            send_b.start().await?;
            receive_b.start().await?;
            receive_b.wait().await?;
            send_b.wait().await?;
        }
        receive_a.wait().await?;
        send_a.wait().await?;
        Ok(world.barrier().await?)
    };
    on_both_runtimes(2, two_requests).unwrap();
}

#[test]
fn a_lost_peer_ends_a_tasks_wait() {
    let abandoned = |fabric: Fabric| async move {
        let region = fabric.alloc_symmetric(8).await?;
        if fabric.rank() == Rank::new(1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            return Err("rank 1 gives up".into());
        }
        let word = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
        let ended = fabric.wait_until(&word, Deps::All, |value| value == 1).await;
        assert_eq!(ended, Err(FabricError::PeerLost { rank: Rank::new(1) }));
        Ok(())
    };
    let error = on_both_runtimes(2, abandoned).unwrap_err();
    assert!(error.to_string().contains("rank 1 gives up"), "{error}");
}

#[test]
fn deadlines_and_dropped_waits() {
    let patient = |fabric: Fabric| async move {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(8).await?;
        let word = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
        let theirs = fabric.remote_word::<u64>(region.at(peer(&fabric), 0))?;
        for round in 1..=5u64 {
            // Our deadline, then Tokio's.
            let never = fabric.wait_until(&word, Deps::All, |value| value == u64::MAX);
            assert!(fabric.before(fabric.now() + Duration::from_millis(3), never).await.is_none());
            let never = fabric.wait_until(&word, Deps::All, |value| value == u64::MAX);
            assert!(tokio::time::timeout(Duration::from_millis(3), never).await.is_err());
            world.barrier().await?;
            fabric.put_word(&theirs, round).await?;
            fabric.wait_until(&word, Deps::All, |value| value >= round).await?;
        }
        Ok(world.barrier().await?)
    };
    on_both_runtimes(2, patient).unwrap();
}

#[test]
fn blocking_calls_stand_beside_tasks() {
    let blocking = |fabric: Fabric| async move {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(64).await?;
        let span = fabric.remote_span::<u64>(region.at(peer(&fabric), 0), 1)?;
        let mut handle = fabric
            .try_post(Put { to: &span, from: [7u64], notice: None })
            .map_err(|refused| format!("refused: {refused:?}"))?;
        assert!(handle.test(), "shared memory finishes what it posts");
        assert_eq!(handle.wait()?, [7]);
        // A separate thread may block in a wait of the same rank.
        let word = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
        let theirs = fabric.clone();
        let blocked = std::thread::spawn(move || {
            onesided::sim::shm::block_on(theirs.wait_until(&word, Deps::All, |value| value == 7))
        });
        let joined = tokio::task::spawn_blocking(move || blocked.join()).await?;
        assert_eq!(joined.map_err(|_| "the blocked thread panicked")??, 7);
        Ok(world.barrier().await?)
    };
    on_both_runtimes(2, blocking).unwrap();
}
