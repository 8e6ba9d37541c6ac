//! Passive and active epochs of a window: `cargo example window -- --ranks 4`.

use onesided::{
    lock::{LockMode, Op, Window},
    prelude::*,
};

async fn window(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<f64>::allocate(&fabric, 1000).await?;
    let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);

    // Passive target: only the origin takes part.
    let epoch = window.lock(LockMode::Exclusive, next).await?;
    let old = epoch.get_one(3).await?;
    epoch.put(3, [old + 1.0]).await?;
    epoch.unlock().await?; // complete, visible, released

    // Active target: everybody takes part.
    let epoch = window.fence().await?;
    epoch.at(Rank::new(0))?.accumulate(7, Op::Sum, &[1.0]).await?;
    epoch.end().await?;

    if fabric.rank() == Rank::new(0) {
        let mut sum = [0.0];
        window.read(7, &mut sum)?;
        println!("{} ranks took part", sum[0]);
    }
    window.free().await?;
    Ok(())
}

fn main() -> std::process::ExitCode {
    onesided::launch(window)
}
