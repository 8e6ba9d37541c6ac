//! Handles.

use super::verdict::{ensure, ensure_eq};
use rdma_fabric::{Amo, Fabric, FabricError, Group, ProgramResult, Rank, op::Atomic};
use std::time::Duration;

pub(crate) async fn test_await_and_wait(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(0) {
        let word = fabric.remote_word::<u64>(region.at(Rank::new(1), 0))?;
        // Awaited after it was seen to be complete.
        let mut handle = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        let mut tries = 0;
        while !handle.test() {
            tries += 1;
            ensure!(tries < 10_000, "O3: never complete");
            fabric.sleep(Duration::from_micros(10)).await;
        }
        ensure!(handle.test(), "O3: complete once, complete ever after");
        ensure_eq!(handle.await?, 0, "O3: the first old value");
        // Waited for by blocking.
        let handle = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        let ready = if fabric.caps().blocking_wait { None } else { Some(()) };
        match (handle.wait(), ready) {
            (Ok(old), _) => ensure_eq!(old, 1, "O3: the second old value"),
            (Err(FabricError::Unsupported { .. }), Some(())) => {
                fabric.sleep(Duration::from_millis(1)).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
        // Held while others complete.
        let held = fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await?;
        for _ in 0..50 {
            fabric.fetch_add(&word, 1).await?;
        }
        ensure!(held.await? <= 52, "O3: a handle kept for later");
        ensure_eq!(fabric.get_word(&word).await?, 53, "O3: all were executed");
    }
    world.barrier().await?;
    Ok(())
}
