//! Atomic adds through global addresses: the simulator's cost on this machine for the ACP paper's
//! eight conditions, and the cost of an add and its completion over shared memory between two ranks
//! that are threads, each with its helper. All in wall-clock time; the figures of the paper are
//! `cargo reproduce --paper acp`.
//!
//! Run with `cargo bench --bench paper_acp`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onesided::{
    Program,
    sim::{
        shm::Threads,
        virt::{Job, NetworkModel, Platform, Torus},
    },
};
use repro::{
    acp_paper::{Condition, How},
    workloads::{Target, Together, global_adds},
};
use std::{hint::black_box, time::Duration};

fn adds(how: How, target: Target, count: u32) -> impl Program<Out = u64> {
    let options = how.options().expect("a way of this library");
    async move |fabric| global_adds(fabric, options, target, count, Together::Barrier).await
}

/// The conditions of table 3, by number, and the variants with two helpers and without one.
fn ways() -> impl Iterator<Item = (String, How)> {
    let table = Condition::TABLE.into_iter().enumerate();
    table
        .map(|(at, condition)| (format!("{}", at + 1), How::Table(condition)))
        .chain([("split".into(), How::Split), ("direct".into(), How::Direct)])
}

/// Measures a whole simulated job of 1000 remote adds, per add.
fn simulating(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate_1000_global_adds");
    group.sample_size(10).throughput(Throughput::Elements(1000));
    let platform = Platform::fx100();
    for (name, how) in ways() {
        let program = adds(how, Target::Remote, 1000);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let torus = Torus::new(&[2]).expect("a torus");
                let job = Job::new(&how.on(&platform), 2).ranks_per_node(1).torus(torus).network(NetworkModel::Router);
                black_box(job.run(&program).expect("it runs").stats.trace_hash)
            });
        });
    }
    group.finish();
}

/// Measures an add and its completion.
fn on_threads(c: &mut Criterion) {
    for target in Target::BOTH {
        let mut group = c.benchmark_group(format!("threads_global_add_{}", target.name()));
        group.sample_size(10).measurement_time(Duration::from_secs(2));
        for (name, how) in ways() {
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter_custom(|times| {
                    // The largest number of adds in a job; its set-up is not measured.
                    let (mut left, mut took) = (times, Duration::ZERO);
                    while left > 0 {
                        let count = left.min(100_000) as u32;
                        let outs =
                            Threads::new(2).shared_address_space(true).run(&adds(how, target, count)).expect("it runs");
                        took += Duration::from_nanos(outs[0] / 1000);
                        left -= u64::from(count);
                    }
                    took
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, simulating, on_threads);
criterion_main!(benches);
