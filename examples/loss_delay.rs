//! The delay until ranks are notified of a loss, and their continuation afterwards: each of the
//! last `--victims` ranks, or of the first with `--first`, waits forever, to be killed or
//! disconnected from outside; the others wait for them.
//!
//! ```text
//! cargo example loss_delay --release -- --fabric cluster --ranks 4 --victims 1
//! ```
//!
//! Each rank prints its process ID, and each survivor the time of its notification, in ns of the
//! system's clock (UNIX time), and then its continuation. `--log DIRECTORY` also writes these lines
//! to a file of each rank, and `--talk N` prints N MiB in between, which may have no reader. `cargo
//! xtask hosts` parses this output.

use onesided::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::PathBuf,
    process::{self, ExitCode},
    time::{SystemTime, UNIX_EPOCH},
};

#[derive(Clone)]
struct Options {
    victims: u32,
    first: bool,
    log: Option<PathBuf>,
    talk: usize,
}

impl Options {
    fn tell(&self, me: Rank, text: &str) -> io::Result<()> {
        if let Some(directory) = &self.log {
            let path = directory.join(me.number().to_string());
            writeln!(OpenOptions::new().create(true).append(true).open(path)?, "{me} {text}")?;
        }
        writeln!(io::stdout(), "{me} {text}")
    }
}

async fn loss_delay(fabric: Fabric, options: Options) -> ProgramResult<()> {
    let me = fabric.rank();
    let survive = (fabric.ranks() as u32)
        .checked_sub(options.victims)
        .filter(|first| *first > 0)
        .ok_or("nobody would survive")?;
    let (is_victim, victim) = match options.first {
        true => (me.number() < options.victims, 0),
        false => (me.number() >= survive, survive),
    };
    let mut world = Group::world(&fabric).await?;
    let memory = fabric.alloc_symmetric(8).await?;
    let word = memory.word::<u64>(&fabric, 0)?;
    let survivors = world.split((!is_victim).then_some(0), 0).await?;
    world.barrier().await?;
    options.tell(me, &format!("is process {}", process::id()))?;
    let Some(mut survivors) = survivors else {
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
        return Ok(());
    };
    match fabric.wait_until(&word, Deps::One(Rank::new(victim)), |value| value == 1).await {
        Err(FabricError::PeerLost { .. }) => {}
        other => return Err(format!("instead of a loss: {other:?}").into()),
    }
    options.tell(me, &format!("was told at {}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos()))?;
    for _ in 0..options.talk << 10 {
        writeln!(io::stdout(), "{:1023}", me)?;
    }
    // Puts and waits among the survivors.
    for _ in 0..10 {
        survivors.barrier().await?;
    }
    options.tell(me, "went on")?;
    Ok(survivors.barrier().await?)
}

fn main() -> ExitCode {
    let usage = "How soon a loss is told.\n
  --victims N       ranks that are lost: the last ones (1)
  --first           the first ones instead
  --log DIRECTORY   a file for each rank of what it tells
  --talk N          MiB that each survivor prints (0)\n";
    onesided::launch_with(usage, |rest| {
        let mut args = pico_args::Arguments::from_vec(rest);
        let problem = |error: pico_args::Error| error.to_string();
        let options = Options {
            victims: args.opt_value_from_str("--victims").map_err(problem)?.unwrap_or(1),
            first: args.contains("--first"),
            log: args.opt_value_from_str("--log").map_err(problem)?,
            talk: args.opt_value_from_str("--talk").map_err(problem)?.unwrap_or(0),
        };
        match args.finish() {
            rest if rest.is_empty() => Ok(async move |fabric| loss_delay(fabric, options.clone()).await),
            rest => Err(format!("there is no {rest:?}")),
        }
    })
}
