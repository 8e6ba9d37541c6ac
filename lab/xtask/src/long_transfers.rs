//! `cargo xtask long-transfers`: puts and gets around every size limit, on every provider, with
//! real memory.
//!
//! The limits: the largest transfer of a Tofu2 command (2^24 - 1 bytes), of a system call (2^31 -
//! 4096), and the ranges of 31 and 32 bits. Most bytes are zeros; those around the limits are
//! marked.

use clap::Args;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, RemoteAddr};
use std::{error::Error, process::ExitCode, time::Instant};
use tofu2_sim::{
    shm::{Launcher, Threads, run_rank},
    virt::{Job, Platform},
};

const LENGTHS: [usize; 7] =
    [(1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) + 4099];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Try only this length.
    #[arg(long, value_name = "BYTES")]
    length: Option<usize>,
    /// Only the lengths around the first limit, some 17 MB.
    #[arg(long, conflicts_with = "length")]
    quick: bool,
    /// Run as a rank: memory that existed before.
    #[arg(long, hide = true)]
    existing: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let (Some(len), Some(endpoint)) = (options.length, tofu2_sim::shm::from_env()?) {
        run_rank(endpoint, &async |fabric| long(fabric, len, options.existing).await)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = if options.quick { &LENGTHS[..3] } else { &LENGTHS[..] };
    let chosen = options.length.map_or_else(|| all.to_vec(), |len| vec![len]);
    let mut failed = 0;
    for len in chosen {
        // Target, source and the result of the get, with some room for other processes.
        let needed = 2 * len as u64 + len as u64 / 2 + (1 << 30);
        match available() {
            Some(available) if available < needed => {
                println!("{len:>11} B  skipped: {available} of {needed} bytes of memory are available");
                continue;
            }
            _ => {}
        }
        for existing in [false, true] {
            for (name, provider) in PROVIDERS {
                let kind = if existing { "registered" } else { "allocated" };
                let start = Instant::now();
                let outcome = provider(len, existing);
                let took = start.elapsed().as_secs_f64();
                match outcome {
                    Ok(()) => println!("{len:>11} B  {kind:<10}  {name:<9}  passes  {took:.1} s"),
                    Err(error) => {
                        println!("{len:>11} B  {kind:<10}  {name:<9}  FAILS   {error}");
                        failed += 1;
                    }
                }
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Provider = fn(usize, bool) -> Result<(), Box<dyn Error>>;
const PROVIDERS: [(&str, Provider); 3] = [("threads", threads), ("processes", processes), ("virt", virt)];

/// Returns the size of a segment for the longest region and its metadata.
fn segment(len: usize) -> usize {
    len + (1 << 20)
}

fn threads(len: usize, existing: bool) -> Result<(), Box<dyn Error>> {
    Threads::new(2).segment_bytes(segment(len)).run(&async |fabric| long(fabric, len, existing).await)?;
    Ok(())
}

fn processes(len: usize, existing: bool) -> Result<(), Box<dyn Error>> {
    let mut args = vec!["long-transfers".to_owned(), "--length".to_owned(), len.to_string()];
    args.extend(existing.then(|| "--existing".to_owned()));
    let launcher = Launcher::new(2).segment_bytes(segment(len)).command(std::env::current_exe()?, args);
    match launcher.run()? {
        0 => Ok(()),
        code => Err(format!("exit code {code}").into()),
    }
}

fn virt(len: usize, existing: bool) -> Result<(), Box<dyn Error>> {
    Job::new(&Platform::fx100(), 2).run(&async |fabric| long(fabric, len, existing).await)?;
    Ok(())
}

/// Returns the memory that is available without swapping, in bytes.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok().map(|kib: u64| kib * 1024)
}

/// Returns the offsets of marked bytes: both ends, and around each limit below `len`.
fn marks(len: usize) -> Vec<usize> {
    let limits = [(1 << 24) - 1, 1 << 24, 0x7fff_0000, 0x7fff_f000, 1 << 31, 1 << 32];
    let around = limits.into_iter().flat_map(|limit: usize| [limit - 1, limit, limit + 1]);
    let mut marks: Vec<usize> = around.chain([0, len - 1]).filter(|&mark| mark < len).collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// Puts `len` bytes from rank 0 into rank 1's memory, and gets them back.
async fn long(fabric: Fabric, len: usize, existing: bool) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let owner = Rank::new(1);
    let mine = fabric.rank() == owner;
    if existing {
        let memory = mine.then(|| fabric.register(vec![0u8; len])).transpose()?;
        let key = memory.as_ref().map_or(rdma_fabric::RegionKey { index: 0, generation: 0 }, |memory| memory.key());
        let key = world.broadcast(1, key).await?;
        there_and_back(&fabric, &mut world, RemoteAddr { rank: owner, region: key, offset: 0 }, len).await?;
        if let Some(memory) = memory {
            let memory = memory.take().await?;
            check(len, |mark| Ok(memory[mark]))?;
        }
    } else {
        let region = fabric.alloc(if mine { len } else { 64 })?;
        let key = world.broadcast(1, region.key()).await?;
        let whole = RemoteAddr { rank: owner, region: key, offset: 0 };
        there_and_back(&fabric, &mut world, whole, len).await?;
        if mine {
            check(len, |mark| {
                let mut byte = [0u8];
                fabric.read(&fabric.local_span(RemoteAddr { offset: mark as u64, ..whole }, 1)?, &mut byte)?;
                Ok(byte[0])
            })?;
        }
    }
    Ok(world.barrier().await?)
}

async fn there_and_back(fabric: &Fabric, world: &mut Group, whole: RemoteAddr, len: usize) -> ProgramResult<()> {
    if fabric.rank() != whole.rank {
        let span = fabric.remote_span::<u8>(whole, len)?;
        let mut bytes = vec![0u8; len];
        for (number, mark) in marks(len).into_iter().enumerate() {
            bytes[mark] = number as u8 + 1;
        }
        bytes = fabric.put(&span, bytes).await?;
        fabric.flush(whole.rank).await?;
        for mark in marks(len) {
            bytes[mark] = 0;
        }
        bytes = fabric.get(&span, bytes).await?;
        check(len, |mark| Ok(bytes[mark]))?;
    }
    Ok(world.barrier().await?)
}

/// Checks that every marked byte, and the unmarked ones next to it, have the values that were put.
fn check(len: usize, byte: impl Fn(usize) -> ProgramResult<u8>) -> ProgramResult<()> {
    let marks = marks(len);
    for (number, &mark) in marks.iter().enumerate() {
        let beside = [mark.wrapping_sub(1), mark + 1].into_iter().filter(|at| *at < len && !marks.contains(at));
        for (at, want) in beside.map(|at| (at, 0)).chain([(mark, number as u8 + 1)]) {
            let have = byte(at)?;
            if have != want {
                return Err(format!("byte {at} of {len} is {have}, not {want}").into());
            }
        }
    }
    Ok(())
}
