//! Posting.

use super::verdict::{ensure, ensure_eq};
use rdma_fabric::{
    Amo, Fabric, FabricError, Group, ProgramResult, Rank, Refused,
    join::join_all,
    op::{Atomic, Get, Nop, Put},
};

pub(crate) async fn a_refused_operation_comes_back(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(64).await?;
    let peer = Rank::new(fabric.rank().number() ^ 1);
    let span = fabric.remote_span::<u32>(region.at(peer, 0), 4)?;
    let mismatch = FabricError::length_mismatch(3, 4);
    match fabric.try_post(Put { to: &span, from: vec![1u32, 2, 3], notice: None }) {
        Err(Refused::Failed(error, put)) => {
            ensure_eq!((error, put.from), (mismatch.clone(), vec![1, 2, 3]), "O1, O10: a put");
        }
        _ => return Err("O10: a put of the wrong length was not refused".into()),
    }
    match fabric.try_post(Get { from: &span, to: [9u32; 3] }) {
        Err(Refused::Failed(error, get)) => {
            ensure_eq!((error, get.to), (mismatch.clone(), [9; 3]), "O1, O10: a get");
        }
        _ => return Err("O10: a get of the wrong length was not refused".into()),
    }
    ensure_eq!(fabric.put(&span, [0u32; 3]).await.err(), Some(mismatch), "O10: a put that waits");
    // A source that is gone.
    let own = fabric.alloc(16)?;
    let source = own.span::<u32>(&fabric, 0, 4)?;
    drop(own);
    let gone = match fabric.try_post(Put { to: &span, from: source, notice: None }) {
        Ok(handle) => handle.await.err(),
        Err(refused) => match refused {
            Refused::Failed(error, _) => Some(error),
            Refused::Full(_) => None,
        },
    };
    ensure!(matches!(gone, Some(FabricError::StaleRegion { .. })), "M3: a source that is gone: {gone:?}");
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn a_dropped_handle_does_not_cancel(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(1024).await?;
    let peer = Rank::new(fabric.rank().number() ^ 1);
    let word = fabric.remote_word::<u64>(region.at(peer, 0))?;
    let span = fabric.remote_span::<u8>(region.at(peer, 512), 500)?;
    let into = region.span::<u8>(&fabric, 8, 500)?;
    for _ in 0..10 {
        drop(fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?);
        drop(fabric.post(Put { to: &span, from: vec![4u8; 500], notice: None }).await?);
        drop(fabric.post(Get { from: &span, to: into.clone() }).await?);
        drop(fabric.post(Get { from: &span, to: vec![0u8; 500] }).await?);
    }
    fabric.flush(peer).await?;
    // An atomic is no put: a later one that is complete tells that the ten were posted, not that they are over.
    let counted = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
    fabric.wait_until(&counted, rdma_fabric::Deps::One(peer), |count| count == 10).await?;
    world.barrier().await?;
    let mut bytes = [0u8; 500];
    fabric.read(&region.span(&fabric, 512, 500)?, &mut bytes)?;
    ensure_eq!(bytes, [4; 500], "O4: puts whose handles were dropped");
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn many_operations_at_once(fabric: Fabric) -> ProgramResult<()> {
    const EACH: usize = 100;
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8 * EACH + 8).await?;
    let target = Rank::new(((fabric.rank().index() + 1) % fabric.ranks()) as u32);
    let counter = fabric.remote_word::<u64>(region.at(target, 8 * EACH as u64))?;
    // More than some queues hold: posting waits for room.
    let all = (0..EACH).map(|i| {
        let (fabric, counter) = (&fabric, &counter);
        let region = &region;
        async move {
            let to = fabric.remote_span::<u64>(region.at(target, 8 * i as u64), 1)?;
            fabric.put(&to, [i as u64 + 1]).await?;
            fabric.post(Nop).await?.await?;
            fabric.fetch_add(counter, 1).await
        }
    });
    let mut olds = join_all(all).await.into_iter().collect::<Result<Vec<u64>, FabricError>>()?;
    olds.sort_unstable();
    ensure!(olds.iter().enumerate().all(|(i, old)| *old == i as u64), "O6: olds {olds:?}");
    fabric.flush_all().await?;
    world.barrier().await?;
    let mut own = vec![0u64; EACH];
    fabric.read(&region.span(&fabric, 0, EACH)?, &mut own)?;
    ensure!(own.iter().enumerate().all(|(i, v)| *v == i as u64 + 1), "O2, O5: {own:?}");
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn memory_in_flight_stays_alive(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8 * 64).await?;
    let peer = Rank::new(fabric.rank().number() ^ 1);
    let far = fabric.remote_span::<u64>(region.at(peer, 0), 64)?;
    for round in 1..=10u64 {
        let own = fabric.alloc(8 * 64)?;
        let part = own.span::<u64>(&fabric, 0, 64)?;
        fabric.write(&part, &[round; 64])?;
        // Complete before its memory goes; what it took is what was there.
        fabric.post(Put { to: &far, from: part.clone(), notice: None }).await?.await?;
        fabric.flush(peer).await?;
        // Into memory that goes meanwhile: lost, or an error of the handle, and nothing else.
        let get = fabric.post(Get { from: &far, to: part }).await?;
        drop(own);
        let reused = fabric.alloc(8 * 64)?;
        let outcome = get.await.err();
        ensure!(matches!(outcome, None | Some(FabricError::StaleRegion { .. })), "O4: a sink that went: {outcome:?}");
        world.barrier().await?;
        let mut seen = [1u64; 64];
        fabric.read(&reused.span(&fabric, 0, 64)?, &mut seen)?;
        // A get that was over when it was posted had written there before.
        ensure!(seen == [0; 64], "O4: a transfer reached memory that was registered after it");
        fabric.read(&region.span(&fabric, 0, 64)?, &mut seen)?;
        ensure!(seen == [round; 64], "O4: round {round} brought {seen:?}");
        world.barrier().await?;
    }
    Ok(())
}
