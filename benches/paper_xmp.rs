//! Reflects of SCALE-LES's arrays: the simulator's cost on this machine for the XcalableMP paper's
//! versions, and the cost of a reflect over shared memory between two ranks that are threads. All
//! in wall-clock time; the figures of the paper are `cargo reproduce --paper xmp`. Only arrays
//! really pack; messages and puts are sent from separate memory.
//!
//! Run with `cargo bench --bench paper_xmp`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onesided::{
    Program,
    sim::{
        shm::Threads,
        virt::{Job, Platform, Torus},
    },
};
use repro::workloads::{
    Together,
    reflects::{Dynamics, Grid, Library, Order, Took, Transport, dynamics},
};
use std::{hint::black_box, num::NonZeroUsize, time::Duration};

const LIBRARIES: [(&str, Library); 6] = [
    ("messages", Library::Messages),
    ("datatypes", Library::Gathered),
    ("datatypes, block by block", Library::Scattered),
    ("packed", Library::Arrays(Transport::Packed)),
    ("blocks", Library::Arrays(Transport::Blocks)),
    ("barriers", Library::Arrays(Transport::Barriers)),
];

/// One array with `block` × `block` columns on each node, and `stages` updates of its shadow, without computation.
fn program(nodes: [usize; 2], block: usize, library: Library, stages: u32) -> impl Program<Out = Took> {
    let grid = Grid {
        horizontal: nodes.map(|nodes| nodes * block),
        vertical: 128,
        nodes: nodes.map(|nodes| NonZeroUsize::new(nodes).expect("nodes")),
    };
    let (variables, warm_up, steps) = (1, 2, 1);
    let (cell, imbalance, order, threads) = (0, 0, Order::InTurn, false);
    let what = Dynamics { grid, variables, stages, warm_up, steps, cell, imbalance, library, order, threads };
    async move |fabric| dynamics(fabric, what, Together::Barrier).await
}

/// Measures a whole simulated job of 10 reflects on 64 nodes, with the blocks of the largest run, per
/// node and reflect.
fn simulating(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate_10_reflects_on_64_nodes");
    group.sample_size(10).throughput(Throughput::Elements(64 * 10));
    let platform = Platform::k();
    for (name, library) in LIBRARIES {
        let program = program([8, 8], 16, library, 8);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let job = Job::new(&platform, 64).torus(Torus::new(&[8, 8]).expect("a torus"));
                black_box(job.run(&program).expect("it runs").stats.trace_hash)
            });
        });
    }
    group.finish();
}

/// Measures a reflect between two ranks by the slower one. Faces in i are sent to the other rank,
/// faces in j to the rank itself.
fn on_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads_reflect");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for (name, library) in LIBRARIES {
        for block in [16, 128] {
            group.bench_function(BenchmarkId::new(name, block), |b| {
                b.iter_custom(|times| {
                    // A job runs 10,000 reflects at most; its set-up is not measured.
                    let (mut left, mut took) = (times, Duration::ZERO);
                    while left > 0 {
                        let some = left.min(10_000) as u32;
                        let outs = Threads::new(2).run(&program([2, 1], block, library, some)).expect("it runs");
                        let slower = outs.iter().map(|took| took.all).max().unwrap_or(0);
                        took += Duration::from_nanos(slower / 1000);
                        left -= u64::from(some);
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
