//! A broadcast by copies between other ranks' memory, each ordered after the one on which it
//! depends: figure 3 of the paper on the ACP library. Rank 0 copies to 1, then from 1 to 2 and from
//! 1 to 3; the others only wait in `sync`.
//!
//! With more ranks the tree continues: rank r has the message from rank r / 2. Run it between processes, in virtual
//! time, and with a helper that takes commands from a queue:
//!
//! ```text
//! cargo example ga_broadcast --release -- --ranks 4
//! cargo example ga_broadcast --release -- --ranks 4 --fabric virt --timeline broadcast.json
//! cargo example ga_broadcast --release -- --ranks 4 --mode command-queue
//! ```

use onesided::{
    Fabric, ProgramResult, Rank,
    acp::{Acp, GlobalAddress, Mode, Options, Order},
};
use pico_args::Arguments;
use std::{ffi::OsString, process::ExitCode};

/// Broadcasts messages of rank 0, of `bytes` bytes each.
async fn ga_broadcast(fabric: Fabric, bytes: usize, mode: Mode) -> ProgramResult<()> {
    let acp = Acp::init_with(&fabric, Options::default().mode(mode)).await?;
    let (me, root) = (acp.rank(), Rank::new(0));

    // Each rank registers a buffer, and writes its address where all others can find it.
    let buffer = acp.register(vec![0u8; bytes], 0)?;
    let own = acp.address(buffer, 0)?;
    acp.store(acp.starter(me)?, own.to_bits()).await?;
    acp.sync().await?;

    // With the first message, ranks look up each other's buffers.
    for round in 1..=2 {
        let message: Vec<u8> = (0..bytes).map(|at| (at % 251 + round) as u8).collect();
        if me == root {
            acp.write(own, &message).await?;
            println!("message {round}:");
            broadcast(&acp, bytes).await?;
        }
        // A rank that waits here also serves others: it executes requested copies if the network
        // cannot copy by itself.
        acp.sync().await?;
        let mut arrived = vec![0; bytes];
        acp.read(own, &mut arrived).await?;
        if arrived != message {
            return Err(format!("message {round} has not arrived whole").into());
        }
        acp.sync().await?;
    }
    println!("{me} has both messages");
    acp.finalize().await?;
    Ok(())
}

/// Requests the copies along the tree.
async fn broadcast(acp: &Acp, bytes: usize) -> ProgramResult<()> {
    let mut buffers = Vec::new();
    for rank in 0..acp.ranks() {
        let word = acp.load(acp.starter(Rank::new(rank as u32))?).await?;
        buffers.push(GlobalAddress::from_bits(word).ok_or("a rank without a buffer")?);
    }
    let start = acp.fabric().now();
    let mut copies = Vec::new();
    for to in 1..buffers.len() {
        let from = to / 2;
        let order = if from == 0 { Order::None } else { Order::After(copies[from - 1]) };
        copies.push(acp.copy(buffers[to], buffers[from], bytes, order).await?);
    }
    println!("  {} copies of {bytes} bytes issued after {:?}", copies.len(), acp.fabric().now() - start);
    for (copy, to) in copies.into_iter().zip(1..) {
        acp.complete(copy).await?;
        println!("  rank {} to rank {to}: complete after {:?}", to / 2, acp.fabric().now() - start);
    }
    Ok(())
}

const USAGE: &str = "\
Rank 0 has its message copied to all others along a tree, by copies ordered by handles.

  --bytes N            the length of the message (65536)
  --mode MODE          who carries out the copies: direct (the calls), command-queue (a helper), or split (two,
                       with --shared-address-space)
";

fn options(rest: Vec<OsString>) -> Result<(usize, Mode), pico_args::Error> {
    let mut rest = Arguments::from_vec(rest);
    let bytes = rest.opt_value_from_str("--bytes")?.unwrap_or(65_536);
    let mode = rest.opt_value_from_fn("--mode", |mode| match mode {
        "direct" => Ok(Mode::Direct),
        "command-queue" => Ok(Mode::CommandQueue),
        "split" => Ok(Mode::Split),
        other => Err(format!("there is no mode `{other}`")),
    })?;
    match rest.finish().first() {
        None => Ok((bytes, mode.unwrap_or_default())),
        Some(word) => {
            Err(pico_args::Error::ArgumentParsingFailed { cause: format!("there is no `{}`", word.display()) })
        }
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, |rest| {
        options(rest).map(|(bytes, mode)| async move |fabric| ga_broadcast(fabric, bytes, mode).await)
    })
}
