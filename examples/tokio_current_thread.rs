//! A lock raced against a timer on Tokio's current-thread runtime: `cargo example
//! tokio_current_thread -- --ranks 2`.
//!
//! Rank 0 keeps the lock for a while; the others give up waiting twice, and then wait. (Giving up
//! keeps one of the rank's few queue nodes in use until the lock reaches it, so a program should
//! not give up without limit.)

use onesided::{Fabric, Group, ProgramResult, Rank, lock::RwLock};
use std::time::Duration;

async fn rank(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let lock = RwLock::symmetric(&fabric, Rank::new(0)).await?;
    let held = if fabric.rank() == Rank::new(0) { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    match held {
        Some(guard) => {
            tokio::time::sleep(Duration::from_millis(50)).await;
            guard.release().await?;
        }
        None => {
            let mut given_up = 0;
            let guard = loop {
                tokio::select! {
                    guard = lock.write() => break guard?,
                    () = tokio::time::sleep(Duration::from_millis(10)), if given_up < 2 => given_up += 1,
                }
            };
            println!("{} got the lock after giving up {given_up} times", fabric.rank());
            guard.release().await?;
        }
    }
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch_shared(|fabric| {
        tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(rank(fabric))
    })
}
