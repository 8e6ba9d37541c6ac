//! Every rank locks a word of rank 0's memory and adds to it: `cargo example counter -- --ranks 4`.

use onesided::{lock::RwLock, prelude::*};

async fn counter(fabric: Fabric) -> ProgramResult<()> {
    let home = Rank::new(0);
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(8).await?;
    let total = window.word_of::<u64>(&fabric, home, 0)?;
    let lock = RwLock::symmetric(&fabric, home).await?;

    let guard = lock.write().await?;
    let old = fabric.get_word(&total).await?;
    fabric.put_word(&total, old + 1).await?;
    guard.release().await?;

    world.barrier().await?;
    println!("{} sees {}", fabric.rank(), fabric.get_word(&total).await?);
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(counter)
}
