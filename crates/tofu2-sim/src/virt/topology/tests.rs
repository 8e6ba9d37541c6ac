//! Checks the event path's tables against the shapes they are made from, and the order of legs
//! against orders other than Tofu's.

use super::{
    route::{Leg, TOFU},
    *,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn shapes() -> impl Strategy<Value = TofuShape> {
    let lengths = ([1u32..6, 1..5, 1..5], 1u32..3, 1u32..5, 1u32..3);
    (lengths, any::<[bool; 4]>()).prop_map(|(([x, y, z], a, b, c), rings)| {
        let closed = |length, ring| ring && length > 1;
        let rings = [closed(x, rings[0]), closed(y, rings[1]), closed(z, rings[2]), false, closed(b, rings[3]), false];
        TofuShape::new([x, y, z, a, b, c], rings).unwrap()
    })
}

fn folding() -> impl Strategy<Value = Folding> {
    prop_oneof![Just(Folding::RowMajor), Just(Folding::Snake), Just(Folding::VirtualTorus)]
}

proptest! {
    #[test]
    fn map_goes_the_ways_of_a_torus(
        lengths in prop::collection::vec(1u32..6, 1..=4), wraps in any::<u8>(), a in any::<u32>(), b in any::<u32>(),
    ) {
        let mut torus = Torus::new(&lengths).unwrap();
        for axis in 0..lengths.len() {
            if wraps >> axis & 1 == 1 {
                torus = torus.mesh(axis);
            }
        }
        let (a, b) = (a % torus.nodes(), b % torus.nodes());
        let map = Map::new(&Topology::Torus(torus.clone()));
        prop_assert_eq!(torus.hops(a, b), torus.hops(b, a));
        let trip = map.trip(a, b, (a, b), None);
        prop_assert_eq!((trip.there, trip.back), (torus.hops(a, b), torus.hops(a, b)));
        let (mut at, mut leg, mut steps) = (a, 0, 0);
        while let Some(hop) = map.next(at, b, trip.path, leg) {
            let (next, _) = map.over(at, hop.link);
            prop_assert_eq!(map.behind(next, hop.link), at);
            prop_assert_eq!(torus.hops(at, next), 1);
            (at, leg, steps) = (next, hop.leg, steps + 1);
        }
        prop_assert_eq!(at, b);
        prop_assert_eq!(steps, trip.there);
    }

    #[test]
    fn map_goes_the_routes_of_a_shape_under_every_folding(
        shape in shapes(), folding in folding(), spread: bool, a in any::<u32>(), b in any::<u32>(),
    ) {
        let (a, b) = (a % shape.nodes(), b % shape.nodes());
        let paths = if spread { Paths::Spread } else { Paths::Default };
        let (fold, choice) = (Fold::new(shape, folding), Choice::new(&shape, paths).unwrap());
        let map = Map::new(&Topology::Tofu(fold.clone(), choice.clone()));
        let placement = Placement::new(fold.clone(), choice, shape.nodes(), 1);
        let (from, to) = (rdma_fabric::Rank::new(a), rdma_fabric::Rank::new(b));
        let route: Vec<Link> = placement.route(from, to, None).unwrap().collect();

        let trip = map.trip(a, b, (a, b), None);
        prop_assert_eq!(Path::from(trip.path), placement.path(from, to).unwrap());
        prop_assert_eq!(trip.there as usize, route.len());
        prop_assert_eq!(trip.back, placement.hops(to, from, Some(shape.default_path(placement.node(from).unwrap()).unwrap())).unwrap());
        let (mut at, mut leg, mut links) = (a, if a == b { map.last_leg() } else { 0 }, vec![]);
        while let Some(hop) = map.next(at, b, trip.path, leg) {
            let node = shape.node(fold.coordinates(at).unwrap()).unwrap();
            links.push(Link { node, port: Port::ALL[usize::from(hop.link)] });
            let (next, _) = map.over(at, hop.link);
            prop_assert_eq!(map.behind(next, hop.link), at);
            prop_assert!(hop.leg >= leg);
            (at, leg) = (next, hop.leg);
        }
        prop_assert_eq!(at, b);
        prop_assert_eq!(links, route);
    }
}

/// Returns the ports of a route that needs every leg, in order.
fn ports(order: &'static [Leg]) -> Vec<Port> {
    let shape = TofuShape::of_groups([4, 4, 4]).unwrap();
    let (from, to) = (Coordinates::from([0, 0, 0, 0, 0, 0]), Coordinates::from([1, 1, 3, 0, 0, 0]));
    let path = PathId::try_from(Path { a: 1, b: 1, c: 1 }).unwrap();
    Route::in_order(order, shape, from, to, path).map(|link| link.port).collect()
}

fn check_order(order: &'static [Leg]) {
    use Port::{A, BMinus, BPlus, C, XPlus, YPlus, ZMinus};
    assert_eq!(ports(order), [BPlus, C, A, XPlus, YPlus, ZMinus, A, C, BMinus], "order of legs");
}

#[test]
fn legs_are_bca_xyz_acb() {
    check_order(&TOFU);
}

/// Swapping any two adjacent legs is noticed.
#[test]
fn any_other_order_of_legs_is_noticed() {
    for swapped in 0..TOFU.len() - 1 {
        let mut order = TOFU;
        order.swap(swapped, swapped + 1);
        let order: &'static [Leg] = Vec::leak(order.to_vec());
        assert!(std::panic::catch_unwind(|| check_order(order)).is_err(), "legs {swapped} and {}", swapped + 1);
    }
}

#[test]
#[should_panic(expected = "order of legs")]
fn between_groups_first_is_not_tofus_order() {
    const WRONG: [Leg; 9] = [TOFU[3], TOFU[4], TOFU[5], TOFU[0], TOFU[1], TOFU[2], TOFU[6], TOFU[7], TOFU[8]];
    check_order(&WRONG);
}

#[test]
fn a_map_of_the_k_computer_is_small_and_soon_made() {
    let shape = System::K.shape();
    for folding in [Folding::RowMajor, Folding::Snake, Folding::VirtualTorus] {
        let make = || {
            let begin = std::time::Instant::now();
            let choice = Choice::new(&shape, Paths::Spread).unwrap();
            (Map::new(&Topology::Tofu(Fold::new(shape, folding), choice)), begin.elapsed())
        };
        let (map, first) = make();
        // The fastest of a few runs, since the machine may be busy.
        let took = (0..4).map(|_| make().1).fold(first, std::time::Duration::min);
        assert!(took.as_millis() < 250, "{folding:?} took {took:?}");
        assert!(map.bytes() <= 16 * shape.nodes() as usize + 4096, "{folding:?} takes {} bytes", map.bytes());
        // The link leads to every place exactly once.
        let nodes: BTreeSet<u32> = (0..shape.nodes()).map(|place| map.over(place, Port::A as u8).0).collect();
        assert_eq!(nodes.len(), 82_944);
    }
}
