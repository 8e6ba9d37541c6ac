//! Jobs of `--fabric cluster` whose ranks are all on this machine: `cluster-program NAME options…`.

pub(super) mod here;
pub(super) mod hosts;
mod run;

use onesided::{Deps, Group, ProgramResult, Rank};
use rdma_fabric::Fabric;
use rustix::process::{Signal, getpid, kill_process};
use std::{io, process::ExitCode};

/// All meet.
async fn meet(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    println!("{} of {}", fabric.rank().number(), fabric.ranks());
    Ok(world.barrier().await?)
}

/// Rank 1 is killed; the others wait for it.
async fn killed(fabric: Fabric) -> ProgramResult<()> {
    let word = fabric.alloc_symmetric(8).await?;
    Group::world(&fabric).await?.barrier().await?;
    if fabric.rank() == Rank::new(1) {
        kill_process(getpid(), Signal::KILL)?;
    }
    fabric.wait_until(&word.word::<u64>(&fabric, 0)?, Deps::One(Rank::new(1)), |value| value == 1).await?;
    Ok(())
}

/// Rank 1 aborts; the others wait.
async fn abort(fabric: Fabric) -> ProgramResult<()> {
    let word = fabric.alloc_symmetric(8).await?;
    Group::world(&fabric).await?.barrier().await?;
    if fabric.rank() == Rank::new(1) {
        fabric.abort("enough", 42)?;
    }
    fabric.wait_until(&word.word::<u64>(&fabric, 0)?, Deps::All, |value| value == 1).await?;
    Ok(())
}

/// All wait for ever; each tells its process.
async fn wait(fabric: Fabric) -> ProgramResult<()> {
    let word = fabric.alloc_symmetric(8).await?;
    Group::world(&fabric).await?.barrier().await?;
    println!("process {}", getpid().as_raw_nonzero());
    fabric.wait_until(&word.word::<u64>(&fabric, 0)?, Deps::All, |value| value == 1).await?;
    Ok(())
}

/// Rank 0 repeats its standard input.
async fn echo(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let bytes = io::copy(&mut io::stdin(), &mut io::stdout())?;
    if fabric.rank() != Rank::new(0) && bytes > 0 {
        return Err(format!("{bytes} bytes of input").into());
    }
    Ok(world.barrier().await?)
}

/// Runs the program of this name.
pub(super) fn program(name: &str) -> ExitCode {
    let name = name.to_owned();
    onesided::launch_with("", move |rest| {
        if rest.len() != 2 {
            return Err(format!("{rest:?}"));
        }
        Ok(async move |fabric| match &*name {
            "meet" => meet(fabric).await,
            "killed" => killed(fabric).await,
            "abort" => abort(fabric).await,
            "echo" => echo(fabric).await,
            _ => wait(fabric).await,
        })
    })
}
