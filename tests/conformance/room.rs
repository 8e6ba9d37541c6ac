//! Queues that are full.

use super::verdict::{ensure, ensure_eq};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank, Refused,
    join::join_all,
    op::{Nop, Put},
};
use std::cell::RefCell;

/// More than any queue holds.
const MANY: u64 = 10_000;

pub(crate) async fn nothing_is_lost_in_a_full_queue(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8 * fabric.ranks()).await?;
    let (me, target) = (fabric.rank().index(), Rank::new(0));
    let kinds = fabric.caps().notice_bits.min(16);
    let data = |i: u64| i % (1 << kinds);
    let to = fabric.remote_span::<u64>(region.at(target, 8 * me as u64), 1)?;
    let mut posted = 0u64;
    if fabric.rank() != target {
        // Nobody takes any: at some time there is no room, and the put comes back.
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
        // These wait for room, with the others.
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

pub(crate) async fn own_queue_is_first_come_first_served(fabric: Fabric) -> ProgramResult<()> {
    const EACH: usize = 100;
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let target = Rank::new(fabric.rank().number() ^ 1);
    let word = fabric.remote_span::<u64>(region.at(target, 0), 1)?;
    // As many as there is room for, so that those below wait.
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
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn a_target_that_leaves(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        return Ok(());
    }
    let to = fabric.remote_span::<u64>(region.at(Rank::new(1), 0), 1);
    // Its part may have gone with it.
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
