//! Jobs of `--fabric cluster` whose ranks are all on this machine: `cluster-program NAME options…`.

pub(super) mod here;
pub(super) mod hosts;
mod run;

use onesided::{Deps, Group, ProgramResult, Rank};
use rdma_fabric::Fabric;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use std::{env, io, process::ExitCode};

/// All ranks synchronise.
async fn barrier(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    println!("{} of {}", fabric.rank().number(), fabric.ranks());
    Ok(world.barrier().await?)
}

/// Each rank prints two variables.
async fn variables(_: Fabric) -> ProgramResult<()> {
    println!("{}, {}", env::var("GIVEN")?, env::var("CHOSEN")?);
    Ok(())
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

/// Rank 1 has a fault; the others wait for it.
async fn fault(fabric: Fabric) -> ProgramResult<()> {
    let word = fabric.alloc_symmetric(8).await?;
    Group::world(&fabric).await?.barrier().await?;
    // The standard library's handler returns from the first signal, because it expects a real fault
    // to recur.
    while fabric.rank() == Rank::new(1) {
        kill_process(getpid(), Signal::SEGV)?;
    }
    fabric.wait_until(&word.word::<u64>(&fabric, 0)?, Deps::One(Rank::new(1)), |value| value == 1).await?;
    Ok(())
}

/// Returns whether `name` is `kind` with this process's rank.
fn is_rank(name: &str, kind: &str) -> bool {
    let variable = env::var("ONESIDED_CLUSTER").unwrap_or_default();
    name.strip_prefix(kind).is_some_and(|rank| variable.contains(&format!(";rank={rank};")))
}

/// If this process is the rank that `name` ends with, it can map little more memory than it has.
fn limit_memory(name: &str) {
    if is_rank(name, "limited") {
        let pages = std::fs::read_to_string("/proc/self/statm").expect("own size");
        let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
        let limit = pages * rustix::param::page_size() as u64 + (64 << 20);
        setrlimit(Resource::As, Rlimit { current: Some(limit), maximum: Some(limit) }).expect("a lower limit");
    }
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

/// All wait for ever; each prints its process id.
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
    limit_memory(&name);
    if is_rank(&name, "absent") {
        return ExitCode::from(3);
    }
    onesided::launch_with("", move |rest| {
        if rest.len() != 2 {
            return Err(format!("{rest:?}"));
        }
        Ok(async move |fabric| match &*name {
            "barrier" => barrier(fabric).await,
            "variables" => variables(fabric).await,
            "killed" => killed(fabric).await,
            "fault" => fault(fabric).await,
            "abort" => abort(fabric).await,
            "echo" => echo(fabric).await,
            _ => wait(fabric).await,
        })
    })
}
