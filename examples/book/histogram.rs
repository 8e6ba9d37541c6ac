//! Ranks count in memory that only a guard can reach: `cargo example histogram -- --ranks 4`.

use onesided::{lock::Locked, prelude::*};

async fn histogram(fabric: Fabric) -> ProgramResult<()> {
    let home = Rank::new(0);
    let mut world = Group::world(&fabric).await?;
    let bins = Locked::<u64>::symmetric(&fabric, home, 16).await?;
    let mine = fabric.rank().number() as usize % 16;

    let mut guard = bins.write().await?;
    if bins.maps() {
        guard.part_mut(home)?[mine] += 1;
    } else {
        let count = guard.get(home, mine..mine + 1).await?;
        guard.put(home, mine, vec![count[0] + 1]).await?;
    }
    guard.release().await?;
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(histogram)
}
