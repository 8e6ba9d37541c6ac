//! Tasks of Tokio's multi-thread runtime that wait for different words of one rank: `cargo example
//! tokio_multi_thread -- --ranks 2`.
//!
//! Every rank spawns a task per mailbox; each takes the values that its right neighbour puts there,
//! and answers.

use onesided::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::sync::Arc;

const MAILBOXES: u64 = 8;
const ROUNDS: u64 = 100;

async fn rank(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let ranks = fabric.ranks() as u32;
    let right = Rank::new((fabric.rank().number() + 1) % ranks);
    let boxes = Arc::new(fabric.alloc_symmetric(MAILBOXES as usize * 8).await?);
    let tasks: Vec<_> = (0..MAILBOXES)
        .map(|mailbox| {
            let (fabric, boxes) = (fabric.clone(), boxes.clone());
            tokio::spawn(async move {
                let mine = fabric.local_word::<u64>(boxes.at(fabric.rank(), 8 * mailbox))?;
                let theirs = fabric.remote_word::<u64>(boxes.at(right, 8 * mailbox))?;
                for round in 1..=ROUNDS {
                    fabric.put_word(&theirs, round).await?;
                    fabric.wait_until(&mine, Deps::All, |value| value >= round).await?;
                }
                Ok::<_, FabricError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    world.barrier().await?;
    println!("{}: {MAILBOXES} tasks took {ROUNDS} words each", fabric.rank());
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch_shared(|fabric| tokio::runtime::Runtime::new()?.block_on(rank(fabric)))
}
