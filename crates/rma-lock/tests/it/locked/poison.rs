//! A panic under a guard poisons the memory for all ranks.

use super::{HOME, everywhere};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{AcquireError, Entered, LockError, Locked, LockedWriteGuard};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Panics under `guard`, in the middle of a change.
fn panic_inside(mut guard: LockedWriteGuard<'_, u64>) {
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        if guard.locked().maps() {
            guard.part_mut(Rank::new(2)).unwrap()[0] = 1;
        }
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
}

fn poisoned_by<G>(entered: Entered<G>) -> ProgramResult<(G, Rank)> {
    match entered {
        Err(AcquireError::Poisoned(poisoned)) => {
            let by = poisoned.by();
            Ok((poisoned.into_inner(), by))
        }
        Ok(_) => Err("not poisoned".into()),
        Err(AcquireError::Lock(error)) => Err(error.into()),
    }
}

async fn poison(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64>::symmetric(&fabric, HOME, 4).await?;
    let culprit = Rank::new(1);
    if fabric.rank() == culprit {
        panic_inside(locked.write().await?);
    }
    world.barrier().await?;
    // Every rank receives the error, each time and from every call.
    for _ in 0..2 {
        let (guard, by) = poisoned_by(locked.read().await)?;
        assert_eq!(by, culprit);
        guard.release().await?;
        assert_eq!(LockError::from(locked.write().await.unwrap_err()), LockError::Poisoned { by });
        let far = fabric.now() + std::time::Duration::from_secs(60);
        let (guard, _) = poisoned_by(locked.read_before(far).await)?;
        guard.release().await?;
        let (guard, _) = poisoned_by(locked.write_before(far).await)?;
        guard.release().await?;
    }
    world.barrier().await?;
    if fabric.rank() == Rank::new(2) {
        let (mut guard, _) = poisoned_by(locked.write().await)?;
        guard.put(Rank::new(2), 0, [0]).await?;
        guard.clear_poison().await?;
        guard.release().await?;
    }
    world.barrier().await?;
    locked.read().await?.release().await?;
    // Neither shared access nor dropping a guard poisons the memory.
    let shared = locked.read().await?;
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _shared = shared;
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    drop(locked.write().await?);
    world.barrier().await?;
    locked.write().await?.release().await?;
    Ok(world.barrier().await?)
}

#[test]
fn a_panic_inside_poisons_for_all() {
    everywhere(&poison);
}
