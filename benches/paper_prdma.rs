//! Persistent exchanges with two neighbours: the simulator's time on this machine for one iteration
//! of 36 ranks, and the cost of start and wait over shared memory between two ranks that are
//! threads. All in wall-clock time; the figures of the paper are `cargo reproduce --paper prdma`.
//!
//! Run with `cargo bench --bench paper_prdma`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onesided::{
    Program,
    prdma::Form,
    sim::{
        shm::Threads,
        virt::{Job, NetworkModel, Platform, Torus},
    },
};
use repro::workloads::{Exchange, Kept, Together, exchanges};
use std::{hint::black_box, time::Duration};

const FORMS: [(&str, Form); 3] = [("fast", Form::Fast), ("mrc", Form::Mrc), ("cpu", Form::Cpu)];

fn exchange(ranks: usize, form: Form, size: usize, iterations: u32) -> impl Program<Out = Vec<u64>> {
    let (warm_up, kept, sizes) = (10, Kept::Persistent, vec![size]);
    let exchange =
        Exchange { grid: vec![ranks], periodic: true, corners: false, form, kept, sizes, warm_up, iterations };
    async move |fabric| exchanges(fabric, exchange.clone(), Together::Barrier).await
}

/// Measures a whole simulated job of 20 iterations, per rank and iteration.
fn simulating(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate_36_ranks_20_iterations");
    group.sample_size(10).throughput(Throughput::Elements(36 * 20));
    let platform = Platform::fx100();
    for (name, form) in FORMS {
        for size in [0, 8192] {
            let program = exchange(36, form, size, 20);
            group.bench_with_input(BenchmarkId::new(name, size), &size, |b, _| {
                b.iter(|| {
                    let torus = Torus::new(&[36]).expect("a torus");
                    let job = Job::new(&platform, 36).ranks_per_node(1).torus(torus).network(NetworkModel::Router);
                    black_box(job.run(&program).expect("it runs").stats.trace_hash)
                });
            });
        }
    }
    group.finish();
}

/// Measures start and wait of the slower of two ranks, each of which is both neighbours of the
/// other.
fn on_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads_start_wait");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for (name, form) in FORMS {
        for size in [0, 8192, 65_536] {
            group.bench_with_input(BenchmarkId::new(name, size), &size, |b, &size| {
                b.iter_custom(|times| {
                    // A job runs 100,000 iterations at most; its set-up is not measured.
                    let (mut left, mut took) = (times, Duration::ZERO);
                    while left > 0 {
                        let iterations = left.min(100_000) as u32;
                        let outs = Threads::new(2).run(&exchange(2, form, size, iterations)).expect("it runs");
                        let slower = outs.iter().map(|rank| rank[0]).max().unwrap_or(0);
                        took += Duration::from_nanos(slower / 1000);
                        left -= u64::from(iterations);
                    }
                    took
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, simulating, on_threads);
criterion_main!(benches);
