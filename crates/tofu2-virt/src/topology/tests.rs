//! Checks the event path's tables against the shapes from which they are built, and that orders of
//! legs other than Tofu's are rejected.

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

fn crossbars() -> impl Strategy<Value = Crossbar> {
    (1u32..17, 1u32..15).prop_map(|(x, y)| Crossbar::new(x, y).unwrap())
}

proptest! {
    #[test]
    fn map_goes_through_one_crossbar_per_hop(crossbar in crossbars(), nodes in any::<[u32; 3]>()) {
        let [a, b, c] = nodes.map(|node| node % crossbar.nodes());
        prop_assert_eq!(crossbar.hops(a, b), crossbar.hops(b, a));
        prop_assert_eq!(crossbar.hops(a, b) == 0, a == b);
        prop_assert!(crossbar.hops(a, b) <= 2);
        prop_assert!(crossbar.hops(a, c) <= crossbar.hops(a, b) + crossbar.hops(b, c));
        let map = Map::new(&Topology::Crossbar(crossbar));
        let trip = map.trip(a, b, (a, b), None);
        prop_assert_eq!((trip.there, trip.back), (crossbar.hops(a, b), crossbar.hops(a, b)));
        let (mut at, mut links, mut switches) = (a, vec![], 0);
        while let Some(hop) = map.next(at, b, trip.path, 0) {
            let (next, wraps) = map.over(at, hop.link);
            prop_assert!(next != at && !wraps && hop.link < map.links() && next < map.places());
            prop_assert_eq!(map.behind(next, hop.link), at);
            prop_assert_ne!(map.is_switch(at), map.is_switch(next));
            switches += u32::from(map.is_switch(next));
            links.push(u32::from(hop.link));
            at = next;
        }
        prop_assert_eq!(at, b);
        prop_assert_eq!(switches, trip.there);
        // The row's crossbar first: links of columns follow those of rows.
        let [x, _] = crossbar.sides();
        prop_assert!(links.is_sorted_by_key(|&link| link >= x), "{:?}", links);
    }

    #[test]
    fn nodes_that_fill_a_box_are_told_from_others(
        lengths in prop::collection::vec(1u32..6, 1..=3), wraps in any::<u8>(), corners in any::<[[u32; 2]; 3]>(), other: u32,
    ) {
        let mut torus = Torus::new(&lengths).unwrap();
        for axis in 0..lengths.len() {
            if wraps >> axis & 1 == 1 {
                torus = torus.mesh(axis);
            }
        }
        // The start and the length along each axis. Intervals of rings may wrap around.
        let sides: Vec<[u32; 2]> = lengths.iter().zip(corners).enumerate().map(|(axis, (&length, [from, many]))| {
            let many = 1 + many % length;
            let is_mesh = wraps >> axis & 1 == 1;
            [from % if is_mesh { length - many + 1 } else { length }, many]
        }).collect();
        let inside = |node: u32| torus.coordinates(node).iter().zip(&lengths).zip(&sides)
            .all(|((&at, length), [from, many])| (at + length - from) % length < *many);
        let mut nodes: Vec<u32> = (0..torus.nodes()).rev().filter(|&node| inside(node)).collect();
        let map = Map::new(&Topology::Torus(torus.clone()));
        prop_assert!(map.fills_box(&nodes));
        nodes.push(nodes[0]);
        prop_assert!(map.fills_box(&nodes));
        nodes.pop();
        // With one node removed, the rest is a box only if the box was a line and the node one of
        // its ends, or one of two.
        let many = nodes.len();
        nodes.remove(other as usize % many);
        let longer = sides.iter().filter(|side| side[1] > 1).count();
        if longer > 1 {
            prop_assert!(!map.fills_box(&nodes), "{:?}", nodes);
        }
        prop_assert_eq!(map.fills_box(&[]), false);
    }
}

#[test]
fn lines_rows_and_rectangles_of_crossbars_are_boxes() {
    // SR8000's 16 nodes: its hardware barrier works on the first 2 to 8 of them, and on all.
    let map = Map::new(&Topology::Crossbar(Crossbar::new(8, 2).unwrap()));
    let first = |nodes: u32| (0..nodes).collect::<Vec<_>>();
    let boxes: Vec<u32> = (1..=16).filter(|&nodes| map.fills_box(&first(nodes))).collect();
    assert_eq!(boxes, [1, 2, 3, 4, 5, 6, 7, 8, 16]);
    assert!(map.fills_box(&[3, 11]) && map.fills_box(&[11, 3, 4, 12, 10, 2]));
    assert!(!map.fills_box(&[0, 2]) && !map.fills_box(&[0, 9]) && !map.fills_box(&[7, 8]));
    let ring = Map::new(&Topology::Torus(Torus::new(&[6]).unwrap()));
    assert!(ring.fills_box(&[5, 0, 1]) && !ring.fills_box(&[0, 2, 5]) && !ring.fills_box(&[1, 3]));
    let line = Map::new(&Topology::Torus(Torus::line(6)));
    assert!(!line.fills_box(&[5, 0, 1]) && line.fills_box(&[2, 1]));
    // One of Tofu's groups is a box, one group and a node of the next is not, and three groups are.
    let shape = TofuShape::of_groups([1, 1, 3]).unwrap();
    let choice = Choice::new(&shape, Paths::Default).unwrap();
    let tofu = Map::new(&Topology::Tofu(Fold::new(shape, Folding::RowMajor), choice));
    assert!(tofu.fills_box(&first(12)) && !tofu.fills_box(&first(13)) && tofu.fills_box(&first(36)));
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
        // Across all nodes, the link leads to every node exactly once.
        let nodes: BTreeSet<u32> = (0..shape.nodes()).map(|place| map.over(place, Port::A as u8).0).collect();
        assert_eq!(nodes.len(), 82_944);
    }
}
