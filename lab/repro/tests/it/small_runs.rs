//! The workloads on small simulated jobs: determinism, both variants of `Together`, and the
//! mechanisms behind the figures.

use rdma_fabric::Time;
use repro::{
    figures::Status,
    lock_paper::{LockPlan, LockRuns, Shapes, WhatIf, compare, run},
    outcome::Verdict,
    progress::Progress,
    workloads::{Together, WAVES, reader_pairs, single_fetch_adds},
};
use tofu2_sim::virt::{Arbiter, Job, NetworkModel, Platform, Torus};

const CLOCK: Together =
    Together::Clock { start: Time::from_picos(1_000_000_000), end: Time::from_picos(1_000_000_000_000) };

fn small_plan(seed: u64) -> LockPlan {
    LockPlan {
        pairs: 20,
        scaling: vec![4, 16, 64],
        ranks_per_node: vec![1],
        k_ranks: 512,
        k_pairs: 2,
        what_if_ranks: vec![8, 64, 512],
        stencil_ranks: vec![16],
        ..LockPlan::paper(Shapes::One, seed)
    }
}

fn small(seed: u64) -> LockRuns {
    run(&small_plan(seed), &mut Progress::silent()).expect("small jobs run")
}

#[test]
fn equal_plans_give_equal_runs() {
    let (a, b) = (small(3), small(3));
    let hashes = |runs: &LockRuns| runs.jobs().map(|job| job.trace_hash).collect::<Vec<_>>();
    assert_eq!(hashes(&a), hashes(&b));
    assert_eq!(a.fx100[0].elapsed, b.fx100[0].elapsed);
    assert_eq!(hashes(&a).len(), 10 + 28 + 2);
}

#[test]
fn four_ranks_stay_below_saturation_and_more_share_it_evenly() {
    let runs = small(0);
    let micros: Vec<f64> = runs.scaling().map(|run| run.slowest_pair() * 1e6).collect();
    // With few ranks, two unloaded atomics through loopback determine the time; with many ranks,
    // one service time per atomic and rank.
    assert!((2.0..2.6).contains(&micros[0]), "4 ranks: {} µs", micros[0]);
    let per_rank = micros[2] / 64.0;
    assert!((0.48..0.60).contains(&per_rank), "64 ranks: {per_rank} µs per rank");
    assert!(micros.windows(2).all(|pair| pair[0] < pair[1]), "{micros:?}");
}

#[test]
fn rows_appear_only_for_what_was_run() {
    let rows = compare(&small(0));
    let row = |id: &str| rows.iter().find(|row| row.id == id);
    assert!(row("L2").is_none() && row("L6").is_none() && row("L8").is_none());
    assert_eq!(row("L1").map(|row| row.kind), Some(Status::Predicted));
    let k = row("L10").expect("the plan has a K run");
    assert_eq!(k.verdict(), Verdict::Miss);
    assert_eq!(k.cost.as_ref().map(|cost| cost.ranks), Some(512));
    assert!(k.cost.as_ref().is_some_and(|cost| cost.events > 512));
}

#[test]
fn four_engines_save_some_of_the_time() {
    let runs = small(0);
    let saved = 1.0 - runs.tnis[1].slowest() / runs.tnis[0].slowest();
    assert!((0.2..0.5).contains(&saved), "{saved}");
    for run in &runs.tnis {
        assert_eq!(run.ranks.len(), 32);
        assert!(run.ranks.iter().all(|one| one.wait > 0), "a fetch-add cannot be over when it is posted");
    }
}

#[test]
fn a_barrier_start_agrees_with_the_clock() {
    let slowest = |together| {
        let run =
            checks::jobs::virtual_time(&Platform::fx100(), 16).ranks_per_node(16).run(&reader_pairs(200, together));
        run.expect("it runs").outs.into_iter().max().unwrap_or(0) as f64
    };
    let ratio = slowest(Together::Barrier) / slowest(CLOCK);
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}

#[test]
fn a_workload_that_comes_late_says_so() {
    let end = Time::from_picos(1_000_000_001);
    let together = Together::Clock { start: Time::from_picos(1_000_000_000), end };
    let error = checks::jobs::virtual_time(&Platform::fx100(), 2)
        .run(&async |fabric| single_fetch_adds(fabric, together).await)
        .expect_err("no time at all");
    assert!(error.to_string().contains("later than the workload's"), "{error}");
}

/// Returns the ratio of the first to the last finisher of 256 ranks on 64 nodes.
fn spread(arrange: impl FnOnce(Job<'static>) -> Job<'static>) -> f64 {
    let job = checks::jobs::virtual_time(&Platform::fx100(), 256).ranks_per_node(4);
    let torus = Torus::new(&[4, 16]).expect("a torus");
    let run = arrange(job.torus(torus)).run(&reader_pairs(100, CLOCK)).expect("it runs");
    let (first, last) = (run.outs.iter().min().copied(), run.outs.iter().max().copied());
    first.unwrap_or(0) as f64 / last.unwrap_or(1) as f64
}

#[test]
fn only_turns_at_the_routers_spread_the_finishing_times() {
    let in_turn = spread(|job| job.network(NetworkModel::Router));
    let oldest_first = spread(|job| job.network(NetworkModel::Router).arbiter(Arbiter::OldestFirst));
    let latency_only = spread(|job| job.network(NetworkModel::Latency));
    assert!(in_turn < 0.2, "{in_turn}");
    assert!(oldest_first > 0.6, "{oldest_first}");
    assert!(latency_only > 0.9, "{latency_only}");
}

/// Fewer ranks at the home pay off as soon as the home is the bottleneck.
#[test]
fn fewer_at_the_home_take_less_time() {
    let runs = small(0);
    let pair = |ranks, form| {
        let wave = runs.what_if.iter().find(|wave| (wave.ranks, wave.tnis, wave.form) == (ranks, 1, form));
        wave.map_or(f64::NAN, WhatIf::pair)
    };
    let [flat, packed, nodes, tree, _] = WAVES.map(|(form, _)| pair(512, form));
    assert!((packed / flat - 1.0).abs() < 0.01, "readers do the same: {flat} {packed}");
    assert!(nodes < flat / 4.0, "64 nodes and not 512 ranks: {flat} {nodes}");
    assert!(tree < flat / 4.0, "{flat} {tree}");
    let [flat, .., each] = WAVES.map(|(form, _)| pair(64, form));
    assert!(each > flat * 4.0, "64 locks each, whose homes serve in parallel: {flat} {each}");
}
