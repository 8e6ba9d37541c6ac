//! Repeatedly forgetting guards never makes a lock look free to a writer while a reference exists.

use super::{AcquireError, Excludes, Locked};
use crate::{
    LockError,
    lock::{MAX_HOLDERS, NODES},
    locks::{BackOffLock, FairLock, PackedLock, RpLock, WindowLock, WritersFirstLock},
};
use checks::jobs::threads;
use core::mem;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, RegionKey, RemoteAddr};

const HOME: Rank = Rank::new(0);
/// The number of guards forgotten here; the rest up to the limit are added to the word that counts
/// them.
const FORGOTTEN: u64 = 3;

/// The offset of a lock's reader count, and the amount that each reader adds; `None` if the number
/// of readers is limited by queue nodes.
type Count = Option<(u64, u64)>;

async fn forget_by(fabric: Fabric, which: u8) -> ProgramResult<()> {
    match which {
        0 => forget::<RpLock>(fabric, Some((0, 4))).await,
        1 => forget::<PackedLock>(fabric, Some((0, 4))).await,
        2 => forget::<WritersFirstLock>(fabric, Some((0, 4))).await,
        3 => forget::<BackOffLock>(fabric, Some((0, 2))).await,
        4 => forget::<WindowLock>(fabric, Some((64, 1 << 32))).await,
        _ => forget::<FairLock>(fabric, None).await,
    }
}

async fn forget<L: Excludes>(fabric: Fabric, count: Count) -> ProgramResult<()> {
    let locked = Locked::<u64, L>::symmetric(&fabric, HOME, 8).await?;
    let open = fabric.alloc_symmetric(8).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    if fabric.rank() == HOME {
        let reader = locked.read().await?;
        let part = reader.part(HOME)?;
        let too_many = match count {
            Some((offset, one)) => {
                // Allocated immediately before.
                let region = RegionKey { index: open.key().index - 1, ..open.key() };
                let words = locked.lock.fabric();
                let word = words.remote_word::<u64>(RemoteAddr { rank: HOME, region, offset })?;
                words.fetch_add(&word, (MAX_HOLDERS - 1 - FORGOTTEN) * one).await?;
                LockError::TooManyHolders { most: MAX_HOLDERS as u32 }
            }
            None => LockError::TooManyWaiting { rank: HOME, nodes: NODES as u32 },
        };
        for _ in 0..FORGOTTEN {
            mem::forget(locked.read().await?);
        }
        for _ in 0..100 {
            match locked.read().await {
                Err(AcquireError::Lock(error)) => assert_eq!(error, too_many),
                other => return Err(format!("one more: {:?}", other.map(drop)).into()),
            }
        }
        world.barrier().await?;
        // The other rank tries to write.
        world.barrier().await?;
        assert_eq!(part, [0; 8]);
    } else {
        world.barrier().await?;
        if let Some(mut guard) = locked.try_write().await? {
            guard.part_mut(HOME)?.fill(1);
        }
        world.barrier().await?;
    }
    Ok(world.barrier().await?)
}

#[test]
fn forgotten_guards_let_no_writer_in() {
    for which in 0..6 {
        threads(2).segment_bytes(1 << 16).run(&async |fabric| forget_by(fabric, which).await).unwrap();
    }
}
