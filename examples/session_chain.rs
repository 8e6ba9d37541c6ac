//! A pipelined broadcast along a chain of ranks that the network runs by itself:
//! `cargo example session_chain --release -- --ranks 6`, in virtual time with `--fabric virt`.
//!
//! Every rank in between fills its session queue once, with a put of each block to the next rank,
//! none of which may start yet. Each block that arrives advances the session offset by the slot
//! that forwards it. No rank in between calls the fabric until the whole message has passed through
//! it; the last rank counts notices.

use onesided::{
    ControlQueue, Deps, Group, ProgramResult,
    control_queue::{Blocks, Command, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::Fabric;
use std::time::Duration;

/// The tag under which every rank registers the message, so that addresses need not be exchanged.
const MESSAGE: u8 = 0;

/// Broadcasts rank 0's message of `blocks` blocks of `block` bytes.
async fn session_chain(fabric: Fabric, blocks: u32, block: u32) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (me, last) = (world.me(), world.len() - 1);
    let bytes = blocks as usize * block as usize;
    let message = fabric.alloc_symmetric(bytes).await?;
    let words = message.span::<u64>(&fabric, 0, bytes / 8)?;
    fabric.write(&words, &vec![if me == 0 { 42 } else { 0 }; bytes / 8])?;

    // The root's queue runs immediately, the others' when blocks arrive.
    let mode = if me == 0 { QueueMode::Normal } else { QueueMode::Session };
    let queue = ControlQueue::open(&fabric, QueueSpec::new(mode))?;
    let at = queue.register_fixed(&message, MESSAGE)?;
    let ids = world.allgather(queue.id().to_bits()).await?;
    let next = |me: usize| QueueId::from_bits(ids[me + 1]).ok_or("a queue id that is none");

    if me < last {
        let pieces = Blocks { count: blocks, stride: u64::from(block) };
        let forward = Command::Put { to: next(me)?, from: at, at: Stadd::fixed(MESSAGE), len: block, blocks: pieces };
        let posting = Posting::new(forward).strong_order();
        let posting = if me + 1 == last { posting.remote(0) } else { posting.sps(1) };
        if me == 0 {
            world.barrier().await?; // Everybody's queue is filled.
            let start = fabric.now();
            queue.post(posting, Deps::All).await?;
            world.barrier().await?; // The last one has everything.
            let took = fabric.now() - start;
            println!("{bytes} bytes in {blocks} blocks over {last} hops: {took:?}");
            return Ok(());
        }
        queue.post(posting, Deps::All).await?;
    }
    world.barrier().await?;
    if me == last && last > 0 {
        for _ in 0..blocks {
            queue.next_notice(Deps::All).await?.status?;
        }
    } else {
        fabric.compute(Duration::from_micros(100)).await;
    }
    world.barrier().await?;
    let mut got = vec![0u64; bytes / 8];
    fabric.read(&words, &mut got)?;
    if got.iter().any(|word| *word != 42) {
        return Err("the message has not arrived whole".into());
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    onesided::launch(async move |fabric| session_chain(fabric, 64, 16_384).await)
}
