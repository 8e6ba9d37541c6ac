//! The lock paper's latencies as predicted by the simulator, in *virtual* time: criterion receives
//! simulated durations, so its reports compare models and protocols, not this machine.
//!
//! Criterion cannot work with samples that are all equal, so each sample is a job with another seed
//! and a jitter of up to 10 ns per leg. Run with `cargo bench --bench paper_lock`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use onesided::sim::virt::{Job, Platform};
use repro::workloads::{Together, reader_pairs};
use std::{cell::Cell, time::Duration};

const PAIRS: u32 = 50;
const JITTER: Duration = Duration::from_nanos(10);

/// Returns the time of one pair of the slowest rank, in nanoseconds of virtual time.
fn slowest_pair(platform: &Platform, ranks: usize, ranks_per_node: u32, seed: u64) -> f64 {
    let job = Job::new(platform, ranks).ranks_per_node(ranks_per_node).seed(seed).jitter(JITTER);
    match job.run(&reader_pairs(PAIRS, Together::Barrier)) {
        Ok(run) => run.outs.into_iter().max().unwrap_or(0) as f64 / f64::from(PAIRS) / 1000.0,
        Err(error) => panic!("{ranks} ranks: {error}"),
    }
}

fn reader_pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("virtual_reader_pair");
    // The warm-up doubles the number of repetitions until this much *real* time has passed, but
    // repetitions take almost no real time here.
    group.sample_size(10).warm_up_time(Duration::from_nanos(1)).measurement_time(Duration::from_millis(500));
    let machines = [("fx100", Platform::fx100(), 32), ("fx10", Platform::fx10(), 16)];
    for (name, platform, ranks_per_node) in machines {
        for ranks in [4, 32, 256] {
            let seed = Cell::new(0);
            group.bench_with_input(BenchmarkId::new(name, ranks), &ranks, |b, &ranks| {
                b.iter_custom(|times| {
                    seed.set(seed.get() + 1);
                    let pair = slowest_pair(&platform, ranks, ranks_per_node, seed.get());
                    Duration::from_secs_f64(pair * 1e-9 * times as f64)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, reader_pair);
criterion_main!(benches);
