//! The stencil in both forms, compared with one computed by a single loop, with the paper's lock
//! and another one.

use rdma_fabric::{Fabric, Program, ProgramResult};
use repro::workloads::{Stencil, Tile, stencil_fence, stencil_lock_all, with_lock_all};
use rma_lock::locks::WindowLock;
use std::time::Duration;
use tofu2_sim::virt::Platform;

const SIZES: [u32; 6] = [1, 2, 3, 4, 6, 12];

fn check(stencil: Stencil, what: &str, tiles: &[Tile]) {
    let hashes: Vec<_> = tiles.iter().map(|tile| tile.hash).collect();
    assert_eq!(hashes, stencil.reference(), "{what}, {stencil:?}");
}

fn simulated<P: Program<Out = Tile>>(ranks: u32, seed: u64, program: &P) -> Vec<Tile> {
    let platform = Platform::fx100();
    let job =
        checks::jobs::virtual_time(&platform, ranks as usize).ranks_per_node(2).seed(seed).shuffle_ties(seed != 0);
    job.jitter(Duration::from_micros(seed)).run(program).expect("it runs").outs
}

async fn two_levels(fabric: Fabric, stencil: Stencil) -> ProgramResult<Tile> {
    with_lock_all::<WindowLock>(&fabric, stencil).await
}

#[test]
fn both_forms_compute_the_same_as_one_loop() {
    for ranks in SIZES {
        let stencil = Stencil::of_ranks(ranks, 3, 7);
        assert_eq!(stencil.across * stencil.down, ranks);
        for seed in 0..4 {
            check(stencil, "fence", &simulated(ranks, seed, &async |fabric| stencil_fence(fabric, stencil).await));
            check(
                stencil,
                "lock_all",
                &simulated(ranks, seed, &async |fabric| stencil_lock_all(fabric, stencil).await),
            );
            check(stencil, "two levels", &simulated(ranks, seed, &async |fabric| two_levels(fabric, stencil).await));
        }
    }
}

#[test]
fn both_forms_run_on_threads() {
    let stencil = Stencil::of_ranks(6, 8, 50);
    let threads = || checks::jobs::threads(6).segment_bytes(1 << 17);
    check(stencil, "fence", &threads().run(&async |fabric| stencil_fence(fabric, stencil).await).unwrap());
    check(stencil, "lock_all", &threads().run(&async |fabric| stencil_lock_all(fabric, stencil).await).unwrap());
}

#[test]
fn the_reference_tells_steps_and_ranks_apart() {
    let hashes = Stencil::of_ranks(6, 3, 7).reference();
    assert!((1..6).all(|rank| hashes[rank] != hashes[0]));
    assert_ne!(Stencil::of_ranks(6, 3, 8).reference(), hashes);
}

#[test]
fn computing_takes_its_virtual_time() {
    let run = |compute| {
        let stencil = Stencil { compute, ..Stencil::of_ranks(4, 2, 10) };
        simulated(4, 0, &async |fabric| stencil_lock_all(fabric, stencil).await)[0].steps
    };
    let (idle, busy) = (run(Duration::ZERO), run(Duration::from_micros(100)));
    assert!((990_000_000..1_200_000_000).contains(&(busy - idle)), "{idle} {busy}");
}
