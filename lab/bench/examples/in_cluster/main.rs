//! Measurements of jobs on several nodes, a scene for each. `cargo xtask bench-cluster` starts
//! them, and evaluates their output: words and numbers, separated by spaces.
//!
//! ```text
//! in_cluster here SOCKET [OPTIONS]     operations within a node, in turns controlled by the socket
//! in_cluster asleep SECONDS [OPTIONS]  atomics at a rank that sleeps: the median and the maximum in ns
//! in_cluster idle SECONDS [OPTIONS]    CPU of a rank that waits: fractions of a core, for a notice, in a barrier
//! in_cluster barrier [OPTIONS]         prints when rank 0 has passed the first barrier
//! in_cluster memory [OPTIONS]          bytes of rank 0 that this project's code has allocated; of its share in
//!                                      the node's control block
//! ```

mod counted;
mod intranode;

use onesided::{Group, ProgramResult, Rank};
use rdma_fabric::{Amo, Deps, Fabric};
use std::{
    ffi::OsString,
    fs,
    io::Write,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

/// The two ranks of most scenes: one that acts, and one that is the target.
pub(crate) const FIRST: Rank = Rank::new(0);
pub(crate) const SECOND: Rank = Rank::new(1);
/// The pause between two atomics at a sleeping rank.
const PAUSE: Duration = Duration::from_millis(7);

#[derive(Clone, Debug)]
enum Scene {
    Here(String),
    Asleep(Duration),
    Idle(Duration),
    Barrier,
    Memory,
}

impl Scene {
    fn of(words: &[OsString]) -> Result<Self, String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let seconds = |text: &str| {
            let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
            Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
        };
        match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["here", socket] => Ok(Scene::Here((*socket).to_owned())),
            ["asleep", time] => Ok(Scene::Asleep(seconds(time)?)),
            ["idle", time] => Ok(Scene::Idle(seconds(time)?)),
            ["barrier"] => Ok(Scene::Barrier),
            ["memory"] => Ok(Scene::Memory),
            _ => Err("which scene? here SOCKET, asleep SECONDS, idle SECONDS, barrier, memory".to_owned()),
        }
    }

    async fn play(&self, fabric: Fabric) -> ProgramResult<()> {
        match self {
            Scene::Here(socket) => intranode::play(&fabric, socket).await,
            Scene::Asleep(time) => asleep(&fabric, *time).await,
            Scene::Idle(time) => idle(&fabric, *time).await,
            Scene::Barrier => barrier(&fabric).await,
            Scene::Memory => memory(&fabric).await,
        }
    }
}

/// Atomics at rank 1, whose thread sleeps and so makes no calls.
async fn asleep(fabric: &Fabric, time: Duration) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(memory.at(SECOND, 0))?;
    world.barrier().await?;
    if fabric.rank() == SECOND {
        thread::sleep(time);
    }
    if fabric.rank() == FIRST {
        let (begun, mut took) = (Instant::now(), Vec::new());
        // The rest of the time is for the other rank to begin its sleep, and not to end it before.
        thread::sleep(time / 10);
        while begun.elapsed() < time * 8 / 10 {
            let before = Instant::now();
            fabric.atomic(&word, Amo::Add(1)).await?;
            took.push(before.elapsed().as_nanos());
            thread::sleep(PAUSE);
        }
        took.sort_unstable();
        say(format_args!("asleep {} {} {}", took[took.len() / 2], took[took.len() - 1], took.len()))?;
    }
    Ok(world.barrier().await?)
}

/// CPU time of rank 1 while it waits for rank 0, which sleeps.
async fn idle(fabric: &Fabric, time: Duration) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(8).await?;
    let span = fabric.remote_span::<u64>(memory.at(SECOND, 0), 1)?;
    world.barrier().await?;
    let (begun, before) = (Instant::now(), cpu()?);
    let share = |begun: Instant, before: Duration| -> ProgramResult<f64> {
        Ok((cpu()? - before).as_secs_f64() / begun.elapsed().as_secs_f64())
    };
    let mut notice = 0.0;
    if fabric.rank() == FIRST {
        thread::sleep(time);
        fabric.put_notify(&span, [1], 1).await?;
    } else if fabric.rank() == SECOND {
        fabric.next_notice(Deps::One(FIRST)).await?;
        notice = share(begun, before)?;
    }
    world.barrier().await?;
    let (begun, before) = (Instant::now(), cpu()?);
    if fabric.rank() == FIRST {
        thread::sleep(time);
    }
    world.barrier().await?;
    if fabric.rank() == SECOND {
        say(format_args!("idle {notice:.6} {:.6}", share(begun, before)?))?;
    }
    Ok(world.barrier().await?)
}

/// Returns the CPU time of all threads of this process.
fn cpu() -> ProgramResult<Duration> {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}

async fn barrier(fabric: &Fabric) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    world.barrier().await?;
    if fabric.rank() == FIRST {
        say("passed")?;
    }
    Ok(())
}

/// Memory use of rank 0 after each rank has accessed every other's memory.
async fn memory(fabric: &Fabric) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(8).await?;
    world.barrier().await?;
    for turn in 1..fabric.ranks() as u32 {
        let other = Rank::new((fabric.rank().number() + turn) % fabric.ranks() as u32);
        fabric.atomic(&fabric.remote_word::<u64>(memory.at(other, 0))?, Amo::Add(1)).await?;
    }
    world.barrier().await?;
    if fabric.rank() == FIRST {
        say(format_args!("memory {} {}", counted::live(), control_block()?))?;
    }
    Ok(world.barrier().await?)
}

/// Returns the bytes of the node's memory file that are attributed to this process.
fn control_block() -> ProgramResult<u64> {
    let (mut inside, mut kib) = (false, 0);
    for line in fs::read_to_string("/proc/self/smaps")?.lines() {
        if let Some(pss) = line.strip_prefix("Pss:") {
            let pss: u64 = pss.trim().trim_end_matches(" kB").parse()?;
            kib += if inside { pss } else { 0 };
        } else if line.split(' ').next().is_some_and(|word| word.contains('-')) {
            inside = line.contains("memfd:onesided-part");
        }
    }
    Ok(kib << 10)
}

/// Prints a line and flushes it.
pub(crate) fn say(line: impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn main() -> ExitCode {
    onesided::launch_with("Measures one scene of a job on several nodes.\n", |rest| {
        let scene = Scene::of(&rest)?;
        Ok::<_, String>(async move |fabric| scene.play(fabric).await)
    })
}
