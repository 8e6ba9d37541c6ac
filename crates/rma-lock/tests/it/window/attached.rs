//! Windows of existing memory.

use super::everywhere;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, Uses};
use rma_lock::{LockMode, Op, Window, WindowError, WindowOptions};
use std::sync::Arc;

/// The number of elements that each member contributes is its number plus one.
async fn bring(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let mut world = Group::world(&fabric).await?;
    let (me, ranks) = (fabric.rank().index(), fabric.ranks());
    let memory = vec![me as u64; me + 1];
    let window = Window::<u64>::attach(&mut world, memory, Uses::Atomics, WindowOptions::default()).await;
    let window = window.map_err(|(error, _)| error)?;
    let target = Rank::new(((me + 1) % ranks) as u32);
    assert_eq!(window.elements(target)?, target.index() + 1);
    let epoch = window.lock(LockMode::Shared, target).await?;
    let there = epoch.get(0, vec![0; epoch.len()]).await?;
    assert_eq!(there, vec![target.index() as u64; target.index() + 1]);
    epoch.unlock().await?;
    window.barrier().await?;
    let epoch = window.lock_all().await?;
    for rank in 0..ranks as u32 {
        let target = epoch.at(Rank::new(rank))?;
        target.accumulate(target.len() - 1, Op::Sum, &[100]).await?;
        assert!(target.put(target.len(), [1]).await.is_err(), "past the end");
    }
    epoch.unlock().await?;
    Ok(window.detach().await?.ok_or("it was attached")?)
}

#[test]
fn memory_of_any_length_is_brought_and_given_back() {
    assert_eq!(everywhere(3, &bring), [vec![300], vec![1, 301], vec![2, 2, 302]]);
}

/// A home that is not a member: no member receives a window, and all regain their memory.
async fn refused(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let mut world = Group::world(&fabric).await?;
    let options = WindowOptions { home: Some(Rank::new(99)), ..Default::default() };
    match Window::<u64>::attach(&mut world, vec![4, 2], Uses::Transfers, options).await {
        Ok(_) => Err("there is no rank 99".into()),
        Err((WindowError::Fabric(_), memory)) => Ok(memory),
        Err((error, _)) => Err(error.into()),
    }
}

#[test]
fn memory_comes_back_if_there_is_no_window() {
    assert_eq!(everywhere(2, &refused), [[4, 2], [4, 2]]);
}

/// A window over memory that is also accessible without it. In the second window, rank 1 claims one
/// element more than it has.
async fn over_regions(fabric: Fabric) -> ProgramResult<(u64, Option<u64>)> {
    let mut world = Group::world(&fabric).await?;
    let (me, ranks) = (fabric.rank(), fabric.ranks());
    let len = me.index() + 1;
    let region = Arc::new(fabric.alloc(len * 8)?);
    let (memory, options) = (region.clone(), WindowOptions::default());
    let window = Window::<u64>::over_region(&mut world, memory, (region.key(), len), options).await?;
    let target = Rank::new(((me.index() + 1) % ranks) as u32);
    let epoch = window.lock(LockMode::Exclusive, target).await?;
    epoch.put(epoch.len() - 1, [40 + me.index() as u64]).await?;
    epoch.unlock().await?;
    window.barrier().await?;
    let mut last = [0];
    fabric.read(&region.span::<u64>(&fabric, me.index() * 8, 1)?, &mut last)?;
    assert!(window.detach().await?.is_none(), "the region is the program's");
    let claimed = len + usize::from(me.index() == 1);
    let refused = Window::<u64>::over_region(&mut world, region.clone(), (region.key(), claimed), options).await;
    match refused.err() {
        Some(WindowError::Fabric(FabricError::OutOfBounds(outside))) => Ok((last[0], Some(outside.len))),
        Some(WindowError::NotAttached { rank }) if rank == Rank::new(1) => Ok((last[0], None)),
        other => Err(format!("rank 1 has too little memory, but: {other:?}").into()),
    }
}

#[test]
fn memory_with_a_key_is_brought_and_kept() {
    assert_eq!(everywhere(3, &over_regions), [(42, None), (40, Some(24)), (41, None)]);
}
