//! The numbers of operations that the modules of the peers document.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use repro::peers::{dec::DecLock, mcs::McsLock, shift::ShiftLock};
use rma_lock::{Guard, RmaLock};
use tofu2_sim::virt::Platform;

/// Rank 1 acquires and releases a free lock `times` times.
async fn alone<L: RmaLock<Options = ()>>(fabric: Fabric, exclusive: bool, times: u32) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let lock = L::symmetric_with(&fabric, Rank::new(0), ()).await?;
    world.barrier().await?;
    if fabric.rank() == Rank::new(1) {
        for _ in 0..times {
            if exclusive {
                lock.write().await?.release().await?;
            } else {
                lock.read().await?.release().await?;
            }
        }
    }
    world.barrier().await?;
    Ok(())
}

/// Returns the numbers of atomics and gets of one pair.
fn of_a_pair<L: RmaLock<Options = ()>>(exclusive: bool) -> [u64; 2] {
    let of = |times| {
        let run = checks::jobs::virtual_time(&Platform::fx100(), 2)
            .run(&async |fabric| alone::<L>(fabric, exclusive, times).await);
        let ops = run.expect("it runs").stats.ops;
        [ops.atomics, ops.gets]
    };
    let (few, more) = (of(1), of(11));
    [0, 1].map(|kind| (more[kind] - few[kind]) / 10)
}

#[test]
fn free_locks_take_what_is_said() {
    assert_eq!(of_a_pair::<ShiftLock>(false), [2, 0]);
    assert_eq!(of_a_pair::<ShiftLock>(true), [4, 0]);
    assert_eq!(of_a_pair::<DecLock>(false), [2, 1]);
    assert_eq!(of_a_pair::<DecLock>(true), [2, 1]);
    assert_eq!(of_a_pair::<McsLock>(true), [2, 0]);
}
