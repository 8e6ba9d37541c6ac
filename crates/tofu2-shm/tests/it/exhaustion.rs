//! Symmetric table entries and memory run out and become available again.

use rdma_fabric::{Fabric, FabricError, Group, ProgramResult};

/// Allocates symmetric regions until no entries are left, then until no memory is left. The memory
/// of regions that all ranks have dropped is available again immediately.
async fn symmetric(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let mut regions = Vec::new();
    let error = loop {
        match fabric.alloc_symmetric(8).await {
            Ok(region) => regions.push(region),
            Err(error) => break error,
        }
    };
    assert_eq!(error, FabricError::TooManyRegions { rank: fabric.rank(), limit: 1024 });
    assert!(regions.len() >= 1000, "{}", regions.len());
    regions.truncate(1);
    regions.push(fabric.alloc_symmetric(8).await?);
    drop(regions);
    world.barrier().await?;
    let error = fabric.alloc_symmetric(2 << 20).await.map(drop).unwrap_err();
    assert!(matches!(error, FabricError::OutOfMemory(none)
        if (none.requested, none.segment) == (2 << 20, 1 << 20)));
    let one = fabric.alloc_symmetric(1 << 19).await?;
    let error = fabric.alloc_symmetric(1 << 19).await.map(drop).unwrap_err();
    assert!(matches!(error, FabricError::OutOfMemory(_)), "{error}");
    world.barrier().await?;
    drop(one);
    world.barrier().await?;
    drop(fabric.alloc_symmetric(1 << 19).await?);
    world.barrier().await?;
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn symmetric_entries_and_memory() {
    checks::jobs::threads(2).segment_bytes(1 << 20).run(&symmetric).unwrap();
}
