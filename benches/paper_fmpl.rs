//! Messages by matching areas: the simulator's cost on this machine for the FMPL paper's figures, and the cost of
//! messages between two ranks that are threads over shared memory. All in wall-clock time; the figures of the paper are
//! `cargo reproduce --paper fmpl`.
//!
//! Run with `cargo bench --bench paper_fmpl`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onesided::sim::{
    shm::Threads,
    virt::{Job, Platform},
};
use repro::workloads::{
    Together,
    messages::{Collectives, Library, collectives, ping_pong, posted_receives},
};
use std::{hint::black_box, time::Duration};

/// Measures a whole simulated job of 1000 round trips of 8 bytes, per message.
fn simulating_messages(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate_2000_messages");
    group.sample_size(10).throughput(Throughput::Elements(2000));
    let platform = Platform::sr8000();
    for library in Library::BETWEEN_TWO {
        group.bench_function(BenchmarkId::from_parameter(library), |b| {
            b.iter(|| {
                let job = Job::new(&platform, 2);
                let program = async |fabric| ping_pong(fabric, library, vec![8], 1000, Together::Barrier).await;
                black_box(job.run(&program).expect("it runs").stats.trace_hash)
            });
        });
    }
    group.finish();
}

/// Measures a whole simulated job of collectives on 16 nodes.
fn simulating_collectives(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate_collectives_on_16_nodes");
    group.sample_size(10);
    let platform = Platform::sr8000();
    for library in Library::COLLECTIVE {
        let roots: Vec<usize> = (0..16).collect();
        let what = Collectives {
            library,
            barriers: 16,
            broadcasts: vec![(8 << 10, roots.clone())],
            reductions: vec![(8 << 10, roots)],
            start: onesided::Time::from_picos(1_000_000_000_000),
        };
        group.bench_function(BenchmarkId::from_parameter(library), |b| {
            b.iter(|| {
                let job = Job::new(&platform, 16);
                let run = job.run(&async |fabric| collectives(fabric, what.clone()).await);
                black_box(run.expect("it runs").stats.trace_hash)
            });
        });
    }
    group.finish();
}

/// Returns the time of `times` messages, by jobs of up to `most`; `job` takes its number of messages and returns the
/// picoseconds of one message.
fn by_jobs(times: u64, most: u32, job: impl Fn(u32) -> u64) -> Duration {
    let (mut left, mut took) = (times, Duration::ZERO);
    while left > 0 {
        let some = left.min(u64::from(most)) as u32;
        took += Duration::from_nanos(job(some) / 1000) * some;
        left -= u64::from(some);
    }
    took
}

/// Measures messages over shared memory: one way, by size, and behind 600 posted receives.
fn on_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads_message");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for bytes in [8, 1 << 10, 64 << 10, 1 << 20] {
        group.bench_function(BenchmarkId::from_parameter(bytes), |b| {
            b.iter_custom(|times| {
                // The largest number of messages in a job; its set-up is not measured.
                by_jobs(times, 20_000, |rounds| {
                    let program =
                        async |fabric| ping_pong(fabric, Library::Fmpl, vec![bytes], rounds, Together::Barrier).await;
                    Threads::new(2).run(&program).expect("it runs")[0][0]
                })
            });
        });
    }
    group.bench_function("4, 600 posted", |b| {
        b.iter_custom(|times| {
            let program = async |fabric| posted_receives(fabric, Library::Fmpl, 600, Together::Barrier).await;
            // A job measures 8 messages, and represents more.
            by_jobs(times, 100_000, |_| Threads::new(2).run(&program).expect("it runs")[0].latency)
        });
    });
    group.finish();
}

criterion_group!(benches, simulating_messages, simulating_collectives, on_threads);
criterion_main!(benches);
