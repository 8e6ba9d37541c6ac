//! Windows of existing memory.

use super::everywhere;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, Uses};
use rma_lock::{LockMode, Op, Window, WindowError, WindowOptions};

/// Each member brings one element more than its number.
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

/// A home that is not a member: nobody gets a window, and all get their memory back.
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
