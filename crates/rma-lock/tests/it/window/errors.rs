//! Refused calls, and windows whose members leave.

use super::everywhere;
use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use rma_lock::{EpochKind, LockMode, Op, Window, WindowError};
use tofu2_sim::virt::Platform;

async fn misuse(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<f64>::allocate(&fabric, 4).await?;
    let nobody = Rank::new(9);
    let outside = |error: WindowError| matches!(error, WindowError::Fabric(FabricError::NotInGroup { rank, .. }) if rank == nobody);
    assert!(window.lock(LockMode::Exclusive, nobody).await.map(drop).is_err_and(outside));
    assert!(window.start(&[nobody]).await.map(drop).is_err_and(outside));
    assert!(window.post(&[nobody]).await.map(drop).is_err_and(outside));
    window.barrier().await?;
    let me = fabric.rank();
    let epoch = window.lock_all().await?;
    assert!(epoch.at(nobody).map(drop).is_err_and(outside));
    let mine = epoch.at(me)?;
    for (at, len) in [(4, 1), (0, 5), (usize::MAX, 1), (usize::MAX / 8, 2)] {
        let values = vec![0.0; len];
        let far = |error: FabricError| matches!(error, FabricError::OutOfBounds(outside) if outside.addr.rank == me);
        assert!(mine.put(at, values.clone()).await.is_err_and(far), "{at}");
        assert!(mine.get(at, values.clone()).await.is_err_and(far), "{at}");
        assert!(mine.accumulate(at, Op::Sum, &values).await.is_err_and(far), "{at}");
        assert!(window.read(at, &mut values.clone()).is_err(), "{at}");
    }
    assert!(matches!(mine.accumulate(0, Op::BitOr, &[1.0]).await, Err(FabricError::Unsupported { .. })));
    mine.put(4, Vec::new()).await?;
    mine.accumulate(4, Op::Sum, &[]).await?;
    let open = |open, asked| Some(WindowError::EpochOpen { open, asked });
    use EpochKind::{All, Exclusive, Fence, NoCheck, Shared, Start};
    assert_eq!(window.lock(LockMode::Shared, me).await.err(), open(All, Shared));
    assert_eq!(window.lock(LockMode::Exclusive, me).await.err(), open(All, Exclusive));
    assert_eq!(window.fence().await.err(), open(All, Fence));
    assert_eq!(window.start(&[me]).await.err(), open(All, Start));
    epoch.unlock().await?;
    let epoch = window.fence().await?;
    assert_eq!(window.lock_all_no_check().err(), open(Fence, NoCheck));
    assert_eq!(window.post(&[me]).await.err(), open(Fence, EpochKind::Exposure));
    epoch.end().await?;
    Ok(window.free().await?)
}

#[test]
fn misuse_is_told_and_does_nothing() {
    everywhere(2, &misuse);
}

/// Rank 1 drops its window immediately; the others still access it.
async fn dropped_early(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let window = Window::<u64>::allocate(&fabric, 4).await?;
    let gone = Rank::new(1);
    if fabric.rank() == gone {
        drop(window);
        world.barrier().await?;
        return Ok(world.barrier().await?);
    }
    let epoch = window.lock_all_no_check()?;
    let target = epoch.at(gone);
    world.barrier().await?;
    let stale = |error: FabricError| matches!(error, FabricError::StaleRegion { rank, .. } if rank == gone);
    if let Ok(target) = target {
        assert!(target.get_one(0).await.is_err_and(stale));
        // Started here, and reported at the end of the epoch.
        let begun = target.accumulate(0, Op::Sum, &[1]).await;
        let ended = epoch.unlock().await;
        let told = match (begun, ended) {
            (Err(error), _) => stale(error),
            (Ok(()), Err(WindowError::Fabric(error))) => stale(error),
            _ => false,
        };
        assert!(told, "an accumulate on a window that is gone");
    }
    Ok(world.barrier().await?)
}

#[test]
fn a_window_that_was_dropped_is_stale() {
    everywhere(3, &dropped_early);
}

async fn sizes_differ(fabric: Fabric) -> ProgramResult<bool> {
    let mut world = Group::world(&fabric).await?;
    let joins = fabric.rank().index() < 3;
    let Some(mut group) = world.split(joins.then_some(0), 0).await? else { return Ok(true) };
    let elements = 4 + fabric.rank().index() / 2;
    let refused = Window::<u64>::in_group(&mut group, elements).await.map(drop);
    group.barrier().await?;
    Ok(matches!(refused, Err(WindowError::Fabric(FabricError::Mismatch(_)))))
}

#[test]
fn members_must_agree_on_the_size() {
    assert_eq!(everywhere(4, &sizes_differ), [true; 4]);
}

/// The last rank fails; the others' waits end with an error that contains it.
async fn lost(fabric: Fabric, how: usize) -> ProgramResult<()> {
    let window = Window::<u64>::allocate(&fabric, 1).await?;
    let last = Rank::new(fabric.ranks() as u32 - 1);
    window.barrier().await?;
    if fabric.rank() == last {
        fabric.sleep(std::time::Duration::from_micros(50)).await;
        return Err("lost".into());
    }
    let end = match how {
        0 => window.fence().await.map(drop),
        1 => window.barrier().await,
        2 => window.start(&[last]).await.map(drop),
        _ => window.post(&[last]).await?.wait().await,
    };
    let Err(WindowError::Fabric(error)) = end else { return Err(format!("{end:?}").into()) };
    match error {
        FabricError::PeerLost { rank } if rank == last => {}
        // A failing rank frees its memory first.
        FabricError::StaleRegion { rank, .. } if rank == last => {}
        error => return Err(error.into()),
    }
    if how == 3 {
        // The exposure no longer waits for it.
        window.post(&[]).await?.wait().await?;
    }
    Ok(())
}

#[test]
fn the_loss_of_a_member_ends_waits() {
    for how in 0..4 {
        let ended = virtual_time(&Platform::fx100(), 3).run(&async |fabric| lost(fabric, how).await);
        let error = ended.expect_err("a rank failed").to_string();
        assert!(error.contains("rank 2") && error.contains("lost"), "{how}: {error}");
    }
}

async fn many(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<u64>::allocate(&fabric, 1).await?;
    let (me, limit) = (fabric.rank(), 1024);
    let refused = Some(WindowError::TooManyMembers { members: fabric.ranks(), limit });
    assert_eq!(window.start(&[me]).await.err(), refused);
    assert_eq!(window.post(&[me]).await.err(), refused);
    let mut epoch = window.fence().await?;
    epoch.at(Rank::new((me.number() + 1) % fabric.ranks() as u32))?.put(0, [me.number().into()]).await?;
    epoch.fence().await?;
    assert_eq!(window.load(0)?, ((me.index() + fabric.ranks() - 1) % fabric.ranks()) as u64);
    epoch.end().await?;
    Ok(window.free().await?)
}

#[test]
fn large_windows_have_fences_and_no_post() {
    virtual_time(&Platform::fx100(), 1030).ranks_per_node(8).run(&many).expect("all ranks end well");
}
