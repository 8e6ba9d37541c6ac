//! Every rank puts its number into the memory of the next one: `cargo example hello -- --ranks 4`.

use onesided::prelude::*;

async fn hello(fabric: Fabric) -> ProgramResult<()> {
    // Eight bytes at every rank, under the same key.
    let region = fabric.alloc_symmetric(8).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;

    // Every rank puts its number into the memory of the next one.
    let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    let word = region.word_of::<u64>(&fabric, next, 0)?;
    fabric.put_word(&word, u64::from(fabric.rank().number()) + 1).await?;

    // A rank waits only for its own memory.
    let own = region.word::<u64>(&fabric, 0)?;
    let got = fabric.wait_until(&own, Deps::All, |value| value != 0).await?;
    println!("{} got {}", fabric.rank(), got - 1);

    // A region is freed after its last access by any rank.
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(hello)
}
