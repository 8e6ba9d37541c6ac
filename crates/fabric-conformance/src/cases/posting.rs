//! Posting, handles, and full queues.

use super::{neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, ProgramResult, Rank, Refused,
    join::join_all,
    op::{Atomic, Get, Nop, Put},
};
use std::{cell::RefCell, time::Duration};

pub(super) async fn a_refused_operation_comes_back(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let peer = neighbour(&fabric);
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
    // A source whose region was dropped.
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
    Ok(world.barrier().await?)
}

pub(super) async fn a_dropped_handle_does_not_cancel(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 1024).await?;
    let peer = neighbour(&fabric);
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
    // An atomic is not a put: completion of a later one shows that the ten were posted, not that
    // they are complete.
    let counted = fabric.local_word::<u64>(region.at(fabric.rank(), 0))?;
    fabric.wait_until(&counted, Deps::One(peer), |count| count == 10).await?;
    world.barrier().await?;
    let mut bytes = [0u8; 500];
    fabric.read(&region.span(&fabric, 512, 500)?, &mut bytes)?;
    ensure_eq!(bytes, [4; 500], "O4: puts whose handles were dropped");
    Ok(world.barrier().await?)
}

pub(super) async fn many_operations_at_once(fabric: Fabric) -> ProgramResult<()> {
    const EACH: usize = 100;
    let (mut world, region) = world_and_region(&fabric, 8 * EACH + 8).await?;
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
    Ok(world.barrier().await?)
}

pub(super) async fn memory_in_flight_stays_alive(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8 * 64).await?;
    let peer = neighbour(&fabric);
    let far = fabric.remote_span::<u64>(region.at(peer, 0), 64)?;
    for round in 1..=10u64 {
        let own = fabric.alloc(8 * 64)?;
        let part = own.span::<u64>(&fabric, 0, 64)?;
        fabric.write(&part, &[round; 64])?;
        // The put completes before its memory is dropped, and reads the contents before the drop.
        fabric.post(Put { to: &far, from: part.clone(), notice: None }).await?.await?;
        fabric.flush(peer).await?;
        // A get into memory that is dropped in the meantime is lost or fails, without any other
        // effect.
        let get = fabric.post(Get { from: &far, to: part }).await?;
        drop(own);
        let reused = fabric.alloc(8 * 64)?;
        let outcome = get.await.err();
        ensure!(matches!(outcome, None | Some(FabricError::StaleRegion { .. })), "O4: a sink that went: {outcome:?}");
        world.barrier().await?;
        let mut seen = [1u64; 64];
        fabric.read(&reused.span(&fabric, 0, 64)?, &mut seen)?;
        // A get that was complete when it was posted wrote there before the memory was registered.
        ensure!(seen == [0; 64], "O4: a transfer reached memory that was registered after it");
        fabric.read(&region.span(&fabric, 0, 64)?, &mut seen)?;
        ensure!(seen == [round; 64], "O4: round {round} brought {seen:?}");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn test_await_and_wait(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    if fabric.rank() == Rank::new(0) {
        let word = fabric.remote_word::<u64>(region.at(Rank::new(1), 0))?;
        // Awaited after it has been observed to be complete.
        let mut handle = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        let mut tries = 0;
        while !handle.test() {
            tries += 1;
            ensure!(tries < 10_000, "O3: never complete");
            fabric.sleep(Duration::from_micros(10)).await;
        }
        ensure!(handle.test(), "O3: complete once, complete ever after");
        ensure_eq!(handle.await?, 0, "O3: the first old value");
        // A wait that blocks.
        let handle = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        let ready = if fabric.caps().blocking_wait { None } else { Some(()) };
        match (handle.wait(), ready) {
            (Ok(old), _) => ensure_eq!(old, 1, "O3: the second old value"),
            (Err(FabricError::Unsupported { .. }), Some(())) => {
                fabric.sleep(Duration::from_millis(1)).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
        // The handle is kept while other operations complete.
        let held = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        for _ in 0..50 {
            fabric.fetch_add(&word, 1).await?;
        }
        ensure!(held.await? <= 52, "O3: a handle kept for later");
        ensure_eq!(fabric.get_word(&word).await?, 53, "O3: all were executed");
    }
    Ok(world.barrier().await?)
}

/// More than any queue holds.
const MANY: u64 = 10_000;

pub(super) async fn nothing_is_lost_in_a_full_queue(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8 * fabric.ranks()).await?;
    let (me, target) = (fabric.rank().index(), Rank::new(0));
    let kinds = fabric.caps().notice_bits.min(16);
    let data = |i: u64| i % (1 << kinds);
    let to = fabric.remote_span::<u64>(region.at(target, 8 * me as u64), 1)?;
    let mut posted = 0u64;
    if fabric.rank() != target {
        // Notices are not taken, so eventually there is no room and the put is returned.
        let mut full = false;
        while !full && posted < MANY {
            let notice = Some(data(posted));
            match fabric.try_post(Put { to: &to, from: [posted], notice }) {
                Ok(handle) => {
                    let _ = handle.await?;
                    posted += 1;
                }
                Err(Refused::Full(put)) => {
                    ensure_eq!(put.from, [posted], "O1: the put that there was no room for");
                    full = true;
                }
                Err(Refused::Failed(error, _)) => return Err(error.into()),
            }
        }
        ensure!(full || posted == MANY, "N3");
    }
    let before = world.allgather(posted).await?;
    let more = |already: u64| already + 50;
    if fabric.rank() == target {
        let mut next = vec![0u64; fabric.ranks()];
        for _ in 0..before[1..].iter().copied().map(more).sum() {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            ensure_eq!(notice.data, data(next[from]), "N3: notice {} of {}", next[from], notice.from);
            next[from] += 1;
        }
        ensure_eq!(fabric.try_notice()?, None, "N3: a notice too many");
        ensure_eq!(next[1..], before[1..].iter().copied().map(more).collect::<Vec<_>>(), "N3: notices of each");
    } else {
        // These wait for room, along with those of the other ranks.
        for i in posted..more(posted) {
            fabric.put_notify(&to, [i], data(i)).await?;
        }
    }
    world.barrier().await?;
    if fabric.rank() == target {
        let mut last = vec![0u64; fabric.ranks()];
        fabric.read(&region.span(&fabric, 0, fabric.ranks())?, &mut last)?;
        for (rank, last) in last.into_iter().enumerate().skip(1) {
            ensure!(last < more(before[rank]), "N2: rank {rank} wrote {last}");
        }
    }
    Ok(())
}

pub(super) async fn own_queue_is_first_come_first_served(fabric: Fabric) -> ProgramResult<()> {
    const EACH: usize = 100;
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let target = neighbour(&fabric);
    let word = fabric.remote_span::<u64>(region.at(target, 0), 1)?;
    // Fill the queue, so that the operations below wait.
    for _ in 0..MANY {
        match fabric.try_post(Nop) {
            Ok(handle) => drop(handle),
            Err(Refused::Full(_)) => break,
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
    }
    let order = RefCell::new(Vec::new());
    let all = (0..EACH).map(|i| {
        let (fabric, word, order) = (&fabric, &word, &order);
        async move {
            let posted = if i % 2 == 0 {
                fabric.post(Put { to: word, from: [i as u64], notice: None }).await.map(drop)
            } else {
                fabric.post(Nop).await.map(drop)
            };
            order.borrow_mut().push(i);
            posted
        }
    });
    for posted in join_all(all).await {
        posted?;
    }
    let order = order.into_inner();
    ensure!(order.len() == EACH && order.is_sorted(), "O2: posted out of turn: {order:?}");
    fabric.flush_all().await?;
    Ok(world.barrier().await?)
}

pub(super) async fn a_target_that_leaves(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        return Ok(());
    }
    let to = fabric.remote_span::<u64>(region.at(Rank::new(1), 0), 1);
    // Rank 1's part may have been dropped with it.
    let to = match to {
        Ok(to) => to,
        Err(FabricError::StaleRegion { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for i in 0..MANY {
        match fabric.put_notify(&to, [i], 1).await {
            Ok(_) => {}
            Err(FabricError::PeersLeft | FabricError::StaleRegion { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
