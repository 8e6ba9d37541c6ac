//! Ranks along a line or in a virtual torus.

use crate::{
    start::{NETWORKS, at, fx100, meet},
    topology::shapes,
};
use proptest::prelude::*;
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank};
use std::collections::BTreeSet;
use tofu2_virt::{Axis, Coordinates, Fold, Folding, Paths, System, TofuShape, Torus};

const FOLDINGS: [Folding; 3] = [Folding::RowMajor, Folding::Snake, Folding::VirtualTorus];

fn hops(shape: &TofuShape, a: Coordinates, b: Coordinates) -> u32 {
    shape.hops(shape.node(a).unwrap(), shape.node(b).unwrap(), None).unwrap()
}

/// Returns the hops between neighbours along the logical axes, without joining the ends.
fn steps(fold: &Fold) -> BTreeSet<u32> {
    let lengths = fold.lengths();
    let strides = [lengths[1] * lengths[2], lengths[2], 1];
    let place = |place| fold.coordinates(place).unwrap();
    let mut found = BTreeSet::new();
    for from in 0..fold.shape().nodes() {
        for (length, stride) in lengths.iter().zip(strides) {
            if from / stride % length + 1 < *length {
                found.insert(hops(&fold.shape(), place(from), place(from + stride)));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_folding_takes_each_node_once(shape in shapes()) {
        for folding in FOLDINGS {
            let fold = Fold::new(shape, folding);
            prop_assert_eq!(fold.lengths().iter().product::<u32>(), shape.nodes());
            let nodes: BTreeSet<u32> =
                (0..shape.nodes()).map(|place| shape.node(fold.coordinates(place).unwrap()).unwrap()).collect();
            prop_assert_eq!(nodes.len() as u32, shape.nodes());
            prop_assert!(fold.coordinates(shape.nodes()).is_err());
        }
    }

    #[test]
    fn neighbours_of_a_snake_and_of_a_virtual_torus_are_one_hop_apart(shape in shapes()) {
        for folding in [Folding::Snake, Folding::VirtualTorus] {
            let steps = steps(&Fold::new(shape, folding));
            prop_assert!(steps.iter().all(|&hops| hops == 1), "{folding:?} of {shape}: {steps:?}");
        }
    }

    #[test]
    fn full_groups_close_every_logical_axis(groups in [1u32..8, 1..8, 1..8]) {
        let shape = TofuShape::of_groups(groups).unwrap();
        prop_assert_eq!(Fold::new(shape, Folding::VirtualTorus).seams(), [1, 1, 1]);
        prop_assert_eq!(Fold::new(shape, Folding::Snake).seams(), [0, 0, 1]);
    }

    /// An axis closes unless it is a rectangle with an odd number of nodes and no ring, or a line
    /// of more than two nodes without a partner.
    #[test]
    fn axes_are_open_only_where_the_shape_leaves_no_ring(shape in shapes()) {
        let seams = Fold::new(shape, Folding::VirtualTorus).seams();
        for (i, (outer, inner)) in [(Axis::X, Axis::A), (Axis::Y, Axis::B), (Axis::Z, Axis::C)].into_iter().enumerate() {
            let (n, m) = (shape.length(outer), shape.length(inner));
            let line = |length: u32, ring: bool| length > 2 && !ring;
            let impossible = match (n, m) {
                (_, 1) => line(n, shape.is_ring(outer)),
                (1, _) => line(m, shape.is_ring(inner)),
                _ => n * m % 2 == 1 && !shape.is_ring(outer) && !shape.is_ring(inner),
            };
            prop_assert_eq!(seams[i] > 1, impossible, "{} with {}: {:?}", outer, inner, seams);
        }
    }
}

#[test]
#[should_panic(expected = "row major is no snake")]
fn row_major_neighbours_are_not_one_hop_apart() {
    let fold = Fold::new(System::FX100_36.shape(), Folding::RowMajor);
    assert!(steps(&fold).iter().all(|&hops| hops == 1), "row major is no snake");
}

#[test]
fn the_published_ring_of_four() {
    let shape = TofuShape::new([1, 1, 2, 1, 1, 2], [false; 6]).unwrap();
    let fold = Fold::new(shape, Folding::VirtualTorus);
    assert_eq!(fold.lengths(), [1, 1, 4]);
    let places = [0, 1, 2, 3].map(|place| fold.coordinates(place).unwrap()).map(|at| (at.z, at.c));
    assert_eq!(places, [(0, 0), (1, 0), (1, 1), (0, 1)]);
    assert_eq!(fold.seams(), [0, 0, 1]);
}

#[test]
fn a_snake_takes_x_then_b_then_c_then_a() {
    let shape = TofuShape::new([2, 1, 1, 2, 3, 2], [false, false, false, false, true, false]).unwrap();
    let fold = Fold::new(shape, Folding::Snake);
    let places: Vec<(u8, u8, u8, u8)> =
        (0..24).map(|place| fold.coordinates(place).unwrap()).map(|at| (at.x, at.b, at.c, at.a)).collect();
    let x_b = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)];
    assert_eq!(&places[..6], x_b.map(|(x, b)| (x, b, 0, 0)));
    assert_eq!(places[6], (1, 2, 1, 0));
    assert_eq!(places[12], (0, 0, 1, 1));
    assert_eq!(places[23], (0, 0, 0, 1), "A closes the ring");
}

#[test]
fn y_goes_out_through_two_columns_of_b_and_back_through_the_third() {
    let shape = TofuShape::new([1, 3, 1, 1, 3, 1], [false, false, false, false, true, false]).unwrap();
    let fold = Fold::new(shape, Folding::VirtualTorus);
    let places: Vec<(u8, u8)> = (0..9).map(|place| fold.coordinates(place).unwrap()).map(|at| (at.y, at.b)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (2, 1), (2, 2), (2, 0), (1, 0)]);
    assert_eq!(fold.seams(), [0, 1, 0]);
    // Nine nodes of a mesh: a mesh has no cycle through an odd number of nodes.
    let mesh = TofuShape::new([1, 3, 1, 1, 3, 1], [false; 6]).unwrap();
    assert_eq!(Fold::new(mesh, Folding::VirtualTorus).seams(), [0, 4, 0]);
    assert_eq!(Fold::new(mesh, Folding::Snake).seams(), [0, 0, 4]);
}

/// Measures the time until a put to the next rank arrives, in picoseconds. The last rank puts to
/// the first.
async fn to_the_next(fabric: Fabric) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64).await?;
    let (me, ranks) = (fabric.rank().index(), fabric.ranks());
    let flag = fabric.remote_word::<u64>(at((me + 1) % ranks, home.key(), 0))?;
    let posted = fabric.now().as_picos();
    fabric.put_word(&flag, posted + 1).await?;
    let own = home.word::<u64>(&fabric, 0)?;
    let before = Rank::new(((me + ranks - 1) % ranks) as u32);
    let sent = fabric.wait_until(&own, Deps::One(before), |flag| flag != 0).await?;
    let took = fabric.now().as_picos() + 1 - sent;
    meet(&fabric, &home, 16).await?;
    Ok(took)
}

#[test]
fn a_folded_job_reaches_its_neighbours_in_one_hop() {
    for network in NETWORKS {
        let shape = System::FX100_36.shape();
        let took = |folding| fx100(36).shape(shape).folding(folding).network(network).run(&to_the_next).unwrap().outs;
        assert!(took(Folding::Snake).iter().all(|&took| took == 710_000), "{network:?}");
        assert!(took(Folding::RowMajor).iter().any(|&took| took > 710_000), "{network:?}");
    }
}

#[test]
fn jobs_tell_hops_routes_and_places_of_ranks() {
    let shape = System::FX100_36.shape();
    let job = |folding| fx100(72).ranks_per_node(2).shape(shape).folding(folding);
    let (rank, last) = (Rank::new, Rank::new(71));
    for folding in FOLDINGS {
        let job = job(folding);
        let placement = job.placement().unwrap();
        assert_eq!(job.hops(rank(0), rank(1)).unwrap(), 0, "one node");
        for (a, b) in [(0, 2), (3, 4), (5, 70), (71, 0)].map(|(a, b)| (rank(a), rank(b))) {
            let links: Vec<_> = job.route(a, b, None).unwrap().collect();
            assert_eq!(job.hops(a, b).unwrap(), links.len() as u32);
            assert_eq!(placement.hops(a, b, None).unwrap(), links.len() as u32);
            assert_eq!(links.first().map(|link| link.node), Some(placement.node(a).unwrap()));
        }
        assert_eq!(placement.coordinates(last).unwrap(), placement.fold().coordinates(35).unwrap());
        let nobody = FabricError::NoSuchRank { rank: rank(72), ranks: 72 };
        assert_eq!(job.hops(rank(0), rank(72)), Err(nobody.clone()));
        assert_eq!(job.route(rank(72), rank(0), None).unwrap_err(), nobody);
    }
    assert_eq!(job(Folding::Snake).hops(rank(71), rank(0)), Ok(1));
    let by = |paths| job(Folding::Snake).paths(paths).placement().unwrap();
    let path = tofu2_virt::Path { a: 1, b: 2, c: 0 };
    assert_eq!(by(Paths::Fixed(path)).path(rank(0), last), Ok(path));
    let spread = by(Paths::Spread);
    let taken: BTreeSet<_> = (1..72).map(|to| spread.path(rank(0), rank(to)).unwrap()).collect();
    assert_eq!(taken.len(), 12, "spread takes all paths");
}

#[test]
fn settings_that_need_a_tofu_shape_say_so() {
    let setting = |error: FabricError| match error {
        FabricError::Setting(setting) => setting.name,
        other => panic!("{other}"),
    };
    let (a, b) = (Rank::new(0), Rank::new(1));
    let torus = || fx100(4).torus(Torus::line(4));
    assert_eq!(torus().hops(a, b), Ok(1));
    assert_eq!(setting(torus().route(a, b, None).unwrap_err()), "shape");
    assert_eq!(setting(torus().folding(Folding::Snake).hops(a, b).unwrap_err()), "folding");
    assert_eq!(setting(torus().paths(Paths::Spread).hops(a, b).unwrap_err()), "paths");
    let shape = System::FX100_36.shape();
    assert_eq!(setting(fx100(37).shape(shape).hops(a, b).unwrap_err()), "topology");
    let nowhere = tofu2_virt::Path { a: 0, b: 3, c: 0 };
    assert_eq!(setting(fx100(36).shape(shape).paths(Paths::Fixed(nowhere)).hops(a, b).unwrap_err()), "topology");
}
