use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Guard, Lock, RmaLock, RwLock, locks::*};
use std::{
    sync::{Arc, Barrier},
    time::Instant,
};
use tofu2_sim::shm::Threads;
const HOME: Rank = Rank::new(1);
async fn repeat<L: RmaLock>(fabric: &Fabric, options: L::Options, write: bool) -> ProgramResult<f64> {
    let mut world = Group::world(fabric).await?;
    let lock = L::symmetric_with(fabric, HOME, options).await?;
    world.barrier().await?;
    let mut least = f64::INFINITY;
    for _ in 0..300 {
        if fabric.rank() == HOME {
            break;
        }
        let begun = Instant::now();
        if write {
            for _ in 0..10_000 {
                lock.write().await?.release().await?;
            }
        } else {
            for _ in 0..10_000 {
                lock.read().await?.release().await?;
            }
        }
        least = least.min(begun.elapsed().as_nanos() as f64 / 10_000.0);
    }
    Ok(least)
}
async fn one(fabric: Fabric, which: u8, write: bool, asleep: Arc<Barrier>) -> ProgramResult<f64> {
    let out = match which {
        0 => repeat::<RpLock>(&fabric, (), write).await?,
        1 => repeat::<RwLock>(&fabric, LockKind::ReaderPreference.into(), write).await?,
        2 => repeat::<FairLock>(&fabric, (), write).await?,
        3 => repeat::<RwLock>(&fabric, LockKind::Fair.into(), write).await?,
        4 => repeat::<WritersFirstLock>(&fabric, (), write).await?,
        5 => repeat::<RwLock>(&fabric, LockKind::WritersFirst.into(), write).await?,
        6 => repeat::<Aggregated<RpLock>>(&fabric, Default::default(), write).await?,
        7 => repeat::<RwLock>(&fabric, LockKind::ByNode.into(), write).await?,
        8 => repeat::<RecoverableLock>(&fabric, Default::default(), write).await?,
        9 => repeat::<RwLock>(&fabric, LockKind::Recoverable.into(), write).await?,
        10 => repeat::<BackOffLock>(&fabric, Default::default(), write).await?,
        _ => repeat::<RwLock>(&fabric, LockKind::BackOff.into(), write).await?,
    };
    asleep.wait();
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    Ok(out)
}
fn main() {
    let names = ["rp", "fair", "writers first", "by node", "recoverable", "back-off"];
    for write in [false, true] {
        for (n, name) in names.iter().enumerate() {
            let mut least = [f64::INFINITY; 2];
            for _ in 0..3 {
                for side in 0..2 {
                    let asleep = Arc::new(Barrier::new(2));
                    let t = Threads::new(2)
                        .run(&async |fabric| one(fabric, (2 * n + side) as u8, write, asleep.clone()).await)
                        .unwrap()[0];
                    least[side] = least[side].min(t);
                }
            }
            println!(
                "{name} {}: inside {:.2} ns, RwLock {:.2} ns",
                if write { "exclusive" } else { "shared" },
                least[0],
                least[1]
            );
        }
    }
    let _ = <RpLock as Lock>::NAME;
}
