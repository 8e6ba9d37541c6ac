//! Registers existing vectors, lets another rank use them, and takes them back; prints the cost of
//! each step: `cargo example existing_memory --release -- --ranks 2`, with `--fabric threads` or
//! `--fabric virt` for other ways of access.

use onesided::{Existing, Fabric, Group, ProgramResult, Rank, Registered, RemoteAddr, Uses};
use std::time::Duration;

/// Rank 0 offers memory, rank 1 uses it and measures.
async fn existing_memory(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    if fabric.ranks() < 2 {
        return Err("two ranks are needed: --ranks 2".into());
    }
    let best = fabric.caps().register_existing;
    for atomics in [false, true] {
        if atomics && best != Existing::CrossCopy {
            // This would repeat the same measurement.
            continue;
        }
        let mine = vec![u64::from(fabric.rank().number()); 1 << 17];
        let mine = if atomics { Registered::new(&fabric, mine, Uses::Atomics)? } else { fabric.register(mine)? };
        let keys = world.allgather(mine.key()).await?;
        if fabric.rank() == Rank::new(1) {
            println!("{:?}", mine.way());
            for bytes in [8usize, 64 << 10, 1 << 20] {
                let there = RemoteAddr { rank: Rank::new(0), region: keys[0], offset: 0 };
                let (put, get) = transfers(&fabric, there, bytes / 8).await?;
                println!("  {bytes:>8} B  put {put:>10.2?}  get {get:>10.2?}");
            }
        }
        world.barrier().await?;
        let mine = mine.take().await?;
        assert_eq!(mine[0], u64::from(fabric.rank().number().max(1)), "what rank 1 left in rank 0's vector");
        if fabric.rank() == Rank::new(1) {
            for elements in [1usize << 17, 1 << 21] {
                let (register, take) = registrations(&fabric, elements, atomics).await?;
                let bytes = 8 * elements;
                println!("  {bytes:>8} B  register {register:>10.2?}  take {take:>10.2?}");
            }
        }
        world.barrier().await?;
    }
    Ok(())
}

/// Returns the shortest times of a put and a get of `elements` words.
async fn transfers(fabric: &Fabric, there: RemoteAddr, elements: usize) -> ProgramResult<(Duration, Duration)> {
    let span = fabric.remote_span::<u64>(there, elements)?;
    let mut buffer = vec![1u64; elements];
    let (mut put, mut get) = (Duration::MAX, Duration::MAX);
    // Short transfers are timed in batches: reading the clock takes as long as they do.
    let batch = if elements == 1 { 1000 } else { 1 };
    for _ in 0..20 {
        let start = fabric.now();
        for _ in 0..batch {
            buffer = fabric.put(&span, buffer).await?;
        }
        fabric.flush(there.rank).await?;
        let between = fabric.now();
        for _ in 0..batch {
            buffer = fabric.get(&span, buffer).await?;
        }
        (put, get) = (put.min((between - start) / batch), get.min((fabric.now() - between) / batch));
    }
    Ok((put, get))
}

/// Returns the shortest times of registering `elements` words and of taking them back.
async fn registrations(fabric: &Fabric, elements: usize, atomics: bool) -> ProgramResult<(Duration, Duration)> {
    let mut memory = vec![1u64; elements];
    let (mut register, mut take) = (Duration::MAX, Duration::MAX);
    for _ in 0..20 {
        let start = fabric.now();
        let registered =
            if atomics { Registered::new(fabric, memory, Uses::Atomics)? } else { fabric.register(memory)? };
        let between = fabric.now();
        memory = registered.take().await?;
        (register, take) = (register.min(between - start), take.min(fabric.now() - between));
    }
    Ok((register, take))
}

fn main() -> std::process::ExitCode {
    onesided::launch(existing_memory)
}
