//! How soon ranks are told that others are lost, and whether they go on: each of the last `--victims`
//! ranks waits for ever, to be killed or cut off by somebody else; the others wait for them.
//!
//! ```text
//! cargo example loss_delay --release -- --fabric cluster --ranks 4 --victims 1
//! ```
//!
//! Each rank prints `rank R is process P`; those that are told `rank R was told at T`, T in ns of the
//! system's clock (UNIX time), and then `rank R went on`. `cargo xtask hosts` reads that.

use onesided::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::{
    process::{self, ExitCode},
    time::{SystemTime, UNIX_EPOCH},
};

async fn loss_delay(fabric: Fabric, victims: u32) -> ProgramResult<()> {
    let me = fabric.rank();
    let first =
        (fabric.ranks() as u32).checked_sub(victims).filter(|first| *first > 0).ok_or("nobody would survive")?;
    let mut world = Group::world(&fabric).await?;
    let memory = fabric.alloc_symmetric(8).await?;
    let word = memory.word::<u64>(&fabric, 0)?;
    let survivors = world.split((me.number() < first).then_some(0), 0).await?;
    world.barrier().await?;
    println!("{me} is process {}", process::id());
    let Some(mut survivors) = survivors else {
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
        return Ok(());
    };
    match fabric.wait_until(&word, Deps::One(Rank::new(first)), |value| value == 1).await {
        Err(FabricError::PeerLost { .. }) => {}
        other => return Err(format!("instead of a loss: {other:?}").into()),
    }
    println!("{me} was told at {}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos());
    // Puts and waits among those that are left.
    for _ in 0..10 {
        survivors.barrier().await?;
    }
    println!("{me} went on");
    Ok(survivors.barrier().await?)
}

fn main() -> ExitCode {
    let usage = "How soon a loss is told.\n\n  --victims N   ranks that are lost: the last ones (1)\n";
    onesided::launch_with(usage, |rest| {
        let mut args = pico_args::Arguments::from_vec(rest);
        let victims = args.opt_value_from_str("--victims").map_err(|error| error.to_string())?.unwrap_or(1);
        match args.finish() {
            rest if rest.is_empty() => Ok(async move |fabric| loss_delay(fabric, victims).await),
            rest => Err(format!("there is no {rest:?}")),
        }
    })
}
