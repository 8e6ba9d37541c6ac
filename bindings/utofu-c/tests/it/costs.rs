//! The cost of calls from C beside that of the calls in Rust which they wrap.

use crate::tools::{alone, compiled};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueMode, QueueSpec, Width},
};
use onesided::Backend;
use process_tests::programs::Linkage;
use rdma_fabric::Amo;
use std::{
    hint::black_box,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Instant,
};

/// As in `bench.c`.
const BATCHES: usize = 201;
const CALLS: u32 = 1000;

fn median(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[BATCHES / 2]
}

/// Measures in Rust what `bench.c` measures in C.
fn in_rust() -> Vec<(String, f64)> {
    let fabric = Backend::Cluster.attach().expect("a job of one rank");
    let open = |engine| ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).on(engine)).expect("a queue");
    let (queue, other) = (open(0), open(1));
    let memory = [0, 1].map(|_| fabric.alloc(4096).expect("memory"));
    let here = queue.register(&memory[0]).expect("a tag");
    let there = other.register(&memory[1]).expect("a tag");
    let put = |len| {
        let posting = Posting::new(Command::put(other.id(), here, there, len)).tcq(0).remote(1);
        median(|| {
            assert!(queue.try_post(posting).is_ok());
            assert!(other.poll_mrq().is_ok_and(|notice| notice.is_some()));
            assert!(queue.poll_tcq().is_ok_and(|completion| completion.is_some()));
        })
    };
    let puts = [8, 64, 4096].map(|len| (format!("put{len}"), put(len)));
    let add = Command::Atomic { to: other.id(), at: there, width: Width::Eight, amo: Amo::Add(1) };
    let posting = Posting::new(add).local(1);
    let add = median(|| {
        assert!(queue.try_post(posting).is_ok());
        assert!(queue.poll_mrq().is_ok_and(|notice| notice.is_some()));
    });
    puts.into_iter().chain([("add".to_owned(), add)]).collect()
}

/// Measures the accesses of memory alone: the bytes of a put, or a fetch-and-add that stores the previous
/// value.
fn of_memory(what: &str) -> f64 {
    let Some(len) = what.strip_prefix("put").and_then(|len| len.parse().ok()) else {
        let (word, value) = (AtomicU64::new(0), AtomicU64::new(0));
        return median(|| black_box(&value).store(black_box(&word).fetch_add(1, SeqCst), Relaxed));
    };
    let (from, mut to) = (vec![1u8; len], vec![0u8; len]);
    median(|| black_box(&mut to[..]).copy_from_slice(black_box(&from)))
}

/// Prints both, and compares them if everything is optimised.
pub(crate) fn calls_cost_at_most_twice_those_in_rust() {
    let Some(program) = compiled("bench", Linkage::Shared) else { return };
    let ended = alone(&program, &[]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    for (line, (what, rust)) in ended.out.lines().zip(in_rust()) {
        let c = line.strip_prefix(&what).and_then(|rest| rest.trim().parse::<f64>().ok()).expect("a time");
        println!("    {what}: {c:.1} ns in C, {rust:.1} ns in Rust, {:.1} ns of memory", of_memory(&what));
        assert!(cfg!(debug_assertions) || c <= 2.0 * rust, "{what}: {c} ns in C, {rust} ns in Rust");
    }
}
