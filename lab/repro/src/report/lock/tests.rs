use super::*;
use crate::{
    Shape,
    lock_paper::{LockPlan, Shapes, StencilForm, compare},
    provenance::tests::example,
    report::{Results, render},
    workloads::FetchAdd,
};
use tofu2_sim::virt::Arbiter;

fn what_if() -> Vec<WhatIf> {
    let job = || example().jobs[0].clone();
    let wave =
        |ranks: u32, form| WhatIf { form, ranks, tnis: 1, lock: 1e-6 * f64::from(ranks), unlock: 1e-6, job: job() };
    [4, 663_552].into_iter().flat_map(|ranks| WAVES.map(|(form, _)| wave(ranks, form))).collect()
}

fn stencils_run() -> Vec<StencilRun> {
    let job = || example().jobs[0].clone();
    StencilForm::ALL.map(|form| StencilRun { form, ranks: 64, step: 1e-5, lock: 0.0, job: job() }).into()
}

/// Returns runs with an invented latency of half a microsecond per rank, without a simulator.
fn invented() -> LockRuns {
    let plan = LockPlan::paper(Shapes::One, 0);
    let job = || example().jobs[0].clone();
    let run = |ranks: u32, ranks_per_node: u32, shape: Option<Shape>| PairRun {
        ranks,
        ranks_per_node,
        shape,
        arbiter: Arbiter::RoundRobin,
        pairs: 1000,
        elapsed: (0..ranks).map(|rank| 540_000_000 * u64::from(rank + 1)).collect(),
        hops: shape.map_or(Vec::new(), |_| (0..ranks).map(|rank| rank / ranks_per_node / 8).collect()),
        job: job(),
    };
    let shape = plan.shapes.first().copied();
    let mut fx100: Vec<_> = plan.scaling.iter().map(|&ranks| run(ranks, 32, shape)).collect();
    fx100.extend([run(128, 1, shape), run(1024, 8, shape)]);
    let fetch_add = |rank: u64| FetchAdd { issue: 150_000, wait: 1_000_000 + rank * 269_500 };
    let tnis = [1, 4].map(|tnis| TniRun { tnis, ranks: (0..32).map(fetch_add).collect(), job: job() });
    LockRuns {
        fx10: run(256, 16, None),
        k: Some(run(16, 8, None)),
        tnis: tnis.into(),
        fx100,
        plan,
        machine: None,
        what_if: what_if(),
        stencils: stencils_run(),
        timeline: None,
    }
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let runs = invented();
    let page = render(Results { lock: Some(&runs), ..Results::default() }, &compare(&runs), &example())
        .expect("it can be drawn");
    for reference in ["http", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(reference), "{reference} leads outside");
    }
    assert_eq!(page.matches("<svg").count(), 10);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn the_page_says_what_made_it_and_what_it_shows() {
    let runs = invented();
    let mut made = example();
    made.quick = Some("50 pairs".into());
    let page =
        render(Results { lock: Some(&runs), ..Results::default() }, &compare(&runs), &made).expect("it can be drawn");
    for part in [
        "onesided reproduce --seed 7",
        "12345678",
        "QUICK RUN",
        "ranks locking at once",
        "(µs)",
        "hops to the lock",
        "atomic_service",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}
