//! The cost of one operation over shared memory between two ranks that are threads, in wall-clock
//! time.
//!
//! Rank 0 accesses the memory of rank 1, whose thread sleeps outside the fabric; in the `…_waiting`
//! variants rank 1 waits inside it, so that each operation has to check whether to wake it. Run
//! with `cargo bench --bench fabric`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onesided::{
    Fabric, Group, ProgramResult, Rank, barrier,
    lock::{Guard, Lock, RmaLock, locks::RpLock},
    sim::shm::Threads,
};
use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    time::Duration,
};

const ME: Rank = Rank::new(0);
const PEER: Rank = Rank::new(1);

/// The operation that rank 0 repeats.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Put that many bytes.
    Put(usize),
    /// Get that many bytes.
    Get(usize),
    /// Add to a word.
    FetchAdd,
    /// Lock and unlock, shared.
    ReadLock,
    /// Lock and unlock, exclusive.
    WriteLock,
}

/// Repeats the work `times` times on rank 0, which returns the elapsed time in picoseconds. Ranks
/// are threads here, so that `asleep` can hold rank 1 outside the fabric.
async fn repeat(fabric: Fabric, work: Work, times: u64, asleep: Option<Arc<Barrier>>) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let bytes = match work {
        Work::Put(bytes) | Work::Get(bytes) => bytes,
        _ => 8,
    };
    let region = fabric.alloc_symmetric(bytes).await?;
    let span = fabric.remote_span::<u64>(region.at(PEER, 0), bytes / 8)?;
    let word = fabric.remote_word::<u64>(region.at(PEER, 0))?;
    let lock = RpLock::symmetric(&fabric, PEER).await?;
    let mut buffer = vec![1u64; bytes / 8];
    world.barrier().await?;

    let begun = fabric.now();
    if fabric.rank() == ME {
        for _ in 0..times {
            match work {
                Work::Put(_) => buffer = fabric.put(&span, buffer).await?,
                Work::Get(_) => buffer = fabric.get(&span, buffer).await?,
                Work::FetchAdd => {
                    black_box(fabric.fetch_add(&word, 1).await?);
                }
                Work::ReadLock => lock.read().await?.release().await?,
                Work::WriteLock => lock.write().await?.release().await?,
            }
        }
    }
    let elapsed = fabric.now().picos_since(begun);
    black_box(buffer);
    if let Some(asleep) = asleep {
        asleep.wait();
    }
    world.barrier().await?;
    Ok(elapsed)
}

/// Executes `times` barriers between both ranks, by the barrier unit or by the group. Returns the
/// elapsed time in picoseconds.
async fn meet(fabric: Fabric, unit: bool, times: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = barrier::Barrier::new(&mut world).await?;
    world.barrier().await?;
    let begun = fabric.now();
    for _ in 0..times {
        if unit {
            barrier.start()?;
            barrier.wait().await?;
        } else {
            world.barrier().await?;
        }
    }
    Ok(fabric.now().picos_since(begun))
}

/// Returns the time of `times` barriers.
fn measure_barriers(unit: bool, times: u64) -> Duration {
    match Threads::new(2).run(&async |fabric| meet(fabric, unit, times).await) {
        Ok(elapsed) => Duration::from_nanos(elapsed[ME.index()] / 1000),
        Err(error) => panic!("barrier: {error}"),
    }
}

/// The activity of rank 1 during the measurement.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Asleep,
    Waiting,
}

/// Returns the time of `times` repetitions of the work.
fn measure(work: Work, peer: Peer, times: u64) -> Duration {
    let asleep = match peer {
        Peer::Asleep => Some(Arc::new(Barrier::new(2))),
        Peer::Waiting => None,
    };
    match Threads::new(2).run(&async |fabric| repeat(fabric, work, times, asleep.clone()).await) {
        Ok(elapsed) => Duration::from_nanos(elapsed[ME.index()] / 1000),
        Err(error) => panic!("{work:?}: {error}"),
    }
}

fn operations(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads");
    for bytes in [8, 4 << 10, 64 << 10] {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::new("put", bytes), &bytes, |b, &bytes| {
            b.iter_custom(|times| measure(Work::Put(bytes), Peer::Asleep, times));
        });
        group.bench_with_input(BenchmarkId::new("get", bytes), &bytes, |b, &bytes| {
            b.iter_custom(|times| measure(Work::Get(bytes), Peer::Asleep, times));
        });
    }
    group.throughput(Throughput::Elements(1));
    for (name, work) in
        [("fetch_add", Work::FetchAdd), ("read_lock_pair", Work::ReadLock), ("write_lock_pair", Work::WriteLock)]
    {
        group.bench_function(name, |b| b.iter_custom(|times| measure(work, Peer::Asleep, times)));
        group.bench_function(format!("{name}_waiting"), |b| b.iter_custom(|times| measure(work, Peer::Waiting, times)));
    }
    for (name, unit) in [("barrier_group", false), ("barrier_unit", true)] {
        group.bench_function(name, |b| b.iter_custom(|times| measure_barriers(unit, times)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(300));
    targets = operations
}
criterion_main!(benches);
