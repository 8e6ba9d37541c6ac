//! A token travels around all ranks by notified puts:
//! `cargo example token_ring --release -- --ranks 4`.
//!
//! Prints the mean time of one hop: on shared memory, a put, its notice and the wake-up of the rank
//! that waits for it.

use onesided::{Deps, Group, ProgramResult, Rank};
use rdma_fabric::Fabric;

/// The token makes `laps` rounds and is incremented at every hop.
async fn token_ring(fabric: Fabric, laps: u64) -> ProgramResult<()> {
    let (me, ranks) = (fabric.rank(), fabric.ranks() as u64);
    let next = Rank::new(((u64::from(me.number()) + 1) % ranks) as u32);
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(8).await?;
    let mine = window.word::<u64>(&fabric, 0)?;
    let theirs = fabric.remote_word::<u64>(window.at(next, 0))?.as_span();
    world.barrier().await?;

    let start = fabric.now();
    if me == Rank::new(0) {
        fabric.put_notify(&theirs, [1], 0).await?;
    }
    let mut token = 0;
    for lap in 0..laps {
        let notice = fabric.next_notice(Deps::All).await?;
        token = fabric.load(&mine)?;
        let hops = lap * ranks + if me == Rank::new(0) { ranks } else { u64::from(me.number()) };
        if token != hops {
            return Err(format!("{notice:?} brought token {token} instead of {hops}").into());
        }
        if me != Rank::new(0) || lap + 1 < laps {
            fabric.put_notify(&theirs, [token + 1], 0).await?;
        }
    }
    if me == Rank::new(0) {
        println!("{token} hops, {:?} each", (fabric.now() - start) / token as u32);
    }
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(async move |fabric| token_ring(fabric, 10_000).await)
}
