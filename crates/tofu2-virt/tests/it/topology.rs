//! Tofu's axes, ports, paths and routes, through the public interface.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tofu2_virt::{Axis, Coordinates, Link, Path, PathId, Port, System, TofuShape, TopologyError};

pub(crate) fn shapes() -> impl Strategy<Value = TofuShape> {
    let lengths = ([1u32..7, 1..6, 1..6], 1u32..3, 1u32..5, 1u32..3);
    (lengths, any::<[bool; 4]>()).prop_map(|(([x, y, z], a, b, c), ring)| {
        let rings = [ring[0] && x > 1, ring[1] && y > 1, ring[2] && z > 1, false, ring[3] && b > 1, false];
        TofuShape::new([x, y, z, a, b, c], rings).unwrap()
    })
}

proptest! {
    #[test]
    fn hops_are_a_metric(shape in shapes(), nodes in any::<[u32; 3]>()) {
        let [a, b, c] = nodes.map(|node| node % shape.nodes());
        let hops = |from, to| shape.hops(from, to, None).unwrap();
        prop_assert_eq!(hops(a, b), hops(b, a));
        prop_assert_eq!(hops(a, b) == 0, a == b);
        prop_assert!(hops(a, c) <= hops(a, b) + hops(b, c));
    }

    #[test]
    fn routes_are_unbroken_and_as_long_as_hops_by_every_path(shape in shapes(), a in any::<u32>(), b in any::<u32>()) {
        let (a, b) = (a % shape.nodes(), b % shape.nodes());
        let shortest = shape.hops(a, b, None).unwrap();
        prop_assert_eq!(shortest, shape.hops(a, b, Some(shape.default_path(b).unwrap())).unwrap());
        for path in shape.paths() {
            let links: Vec<Link> = shape.route(a, b, Some(path)).unwrap().collect();
            let hops = shape.hops(a, b, Some(path)).unwrap();
            prop_assert_eq!(links.len() as u32, hops);
            prop_assert!(hops >= shortest);
            let mut at = a;
            for link in &links {
                prop_assert_eq!(link.node, at);
                at = shape.neighbour(at, link.port).unwrap().expect("a route takes no link that isn't there");
            }
            prop_assert_eq!(at, b);
            // A packet that returned over the same link would waste bandwidth, which no real path
            // does.
            let different: BTreeSet<_> = links.iter().collect();
            prop_assert_eq!(different.len(), links.len());
        }
    }

    #[test]
    fn nodes_and_coordinates_are_one_to_one(shape in shapes(), node in any::<u32>()) {
        let node = node % shape.nodes();
        prop_assert_eq!(shape.node(shape.coordinates(node).unwrap()), Ok(node));
    }

    #[test]
    fn every_link_has_a_way_back(shape in shapes(), node in any::<u32>()) {
        let node = node % shape.nodes();
        for port in Port::ALL {
            if let Some(next) = shape.neighbour(node, port).unwrap() {
                prop_assert_eq!(shape.neighbour(next, port.back()), Ok(Some(node)));
                prop_assert_eq!(shape.hops(node, next, None), Ok(1));
            }
        }
    }
}

fn at(coordinates: [u8; 6]) -> Coordinates {
    coordinates.into()
}

#[test]
fn b_0_and_b_2_are_neighbours() {
    let shape = System::FX100_36.shape();
    let node = |b| shape.node(at([0, 0, 0, 0, b, 0])).unwrap();
    assert_eq!(shape.hops(node(0), node(2), None), Ok(1));
    let line = TofuShape::new([1, 1, 3, 2, 3, 2], [false; 6]).unwrap();
    assert_eq!(line.hops(0, node(2), None), Ok(2), "not if B were no ring");
}

#[test]
fn ten_ports_and_their_names() {
    let names: Vec<String> = Port::ALL.iter().map(Port::to_string).collect();
    assert_eq!(names, ["X+", "X-", "Y+", "Y-", "Z+", "Z-", "A", "B+", "B-", "C"]);
    let per_axis = Axis::ALL.map(|axis| Port::ALL.iter().filter(|port| port.axis() == axis).count());
    assert_eq!(per_axis, [2, 2, 2, 1, 2, 1]);
    // Inside the K computer all ten ports lead to other nodes; at an end of Y, which is not a ring,
    // one leads nowhere.
    let shape = System::K.shape();
    let neighbours = |place: [u8; 6]| {
        let node = shape.node(at(place)).unwrap();
        Port::ALL.iter().filter_map(|&port| shape.neighbour(node, port).unwrap()).collect::<BTreeSet<_>>()
    };
    assert_eq!(neighbours([5, 5, 5, 0, 0, 0]).len(), 10);
    assert_eq!(neighbours([0, 5, 0, 1, 2, 1]).len(), 10);
    assert_eq!(neighbours([0, 0, 0, 0, 0, 0]).len(), 9);
    assert_eq!(neighbours([23, 17, 15, 1, 2, 1]).len(), 9);
}

#[test]
fn the_default_path_leads_by_the_targets_own_place() {
    let shape = TofuShape::of_groups([4, 4, 4]).unwrap();
    let (from, to) = (shape.node(at([0, 0, 0, 0, 0, 0])).unwrap(), shape.node(at([1, 0, 3, 1, 2, 1])).unwrap());
    let ports = |path| shape.route(from, to, path).unwrap().map(|link| link.port.to_string()).collect::<Vec<_>>();
    assert_eq!(ports(None), ["B-", "C", "A", "X+", "Z-"]);
    assert_eq!(shape.default_path(to), Ok(Path { a: 1, b: 2, c: 1 }));
    // By the sender's own coordinates: first between groups, then A, C, B.
    assert_eq!(ports(Some(Path { a: 0, b: 0, c: 0 })), ["X+", "Z-", "A", "C", "B-"]);
    assert_eq!(ports(Some(Path { a: 1, b: 0, c: 0 })), ["A", "X+", "Z-", "C", "B-"]);
}

#[test]
fn detours_count_in_both_groups() {
    let shape = TofuShape::of_groups([2, 1, 1]).unwrap();
    let (from, to) = (0, shape.node(at([1, 0, 0, 0, 0, 0])).unwrap());
    let hops = |a, b, c| shape.hops(from, to, Some(Path { a, b, c })).unwrap();
    assert_eq!((hops(0, 0, 0), hops(1, 0, 0), hops(0, 2, 1), hops(1, 1, 1)), (1, 3, 5, 7));
    // This also holds if both are in one group. So routes along a chosen path violate the triangle
    // inequality: the direct route to the target is shorter.
    let beside = shape.node(at([0, 0, 0, 1, 0, 0])).unwrap();
    let by = |a, b, c| shape.hops(0, beside, Some(Path { a, b, c })).unwrap();
    assert_eq!((by(1, 0, 0), by(0, 1, 0)), (1, 3));
    assert_eq!(shape.hops(0, 0, Some(Path { a: 1, b: 1, c: 1 })), Ok(0), "within a node there is no network");
}

#[test]
fn a_full_group_has_twelve_paths_with_ids_of_four_bits() {
    let shape = System::K.shape();
    let ids: BTreeSet<u8> = shape.paths().map(|path| PathId::try_from(path).unwrap().bits()).collect();
    assert_eq!(ids.len(), 12);
    for bits in 0..16 {
        assert_eq!(PathId::try_from(Path::from(PathId::new(bits).unwrap())).unwrap().bits(), bits);
    }
    assert_eq!(PathId::try_from(Path { a: 1, b: 2, c: 0 }).unwrap().bits(), 0b0101);
    assert_eq!(PathId::try_from(Path { a: 0, b: 1, c: 1 }).unwrap().bits(), 0b1010);
    assert_eq!(PathId::new(16), Err(TopologyError::NoSuchPathId { bits: 16 }));
    for path in [Path { a: 2, b: 0, c: 0 }, Path { a: 0, b: 4, c: 0 }, Path { a: 0, b: 0, c: 2 }] {
        assert_eq!(PathId::try_from(path), Err(TopologyError::PathTooLarge { path }));
    }
}

#[test]
fn impossible_shapes_and_places_are_named() {
    use TopologyError::*;
    let none = [false; 6];
    let ring = |axis: Axis| std::array::from_fn(|i| i == axis.index());
    let wrong = |lengths, rings| TofuShape::new(lengths, rings).unwrap_err();
    assert_eq!(wrong([4, 4, 0, 2, 3, 2], none), Empty { axis: Axis::Z });
    assert_eq!(wrong([257, 1, 1, 2, 3, 2], none), TooLong { axis: Axis::X, length: 257, limit: 256 });
    assert_eq!(wrong([u32::MAX; 6], none), TooLong { axis: Axis::X, length: u32::MAX, limit: 256 });
    assert_eq!(wrong([1, 1, 1, 3, 3, 2], none), TooLong { axis: Axis::A, length: 3, limit: 2 });
    assert_eq!(wrong([1, 1, 1, 2, 5, 2], none), TooLong { axis: Axis::B, length: 5, limit: 4 });
    assert_eq!(wrong([1, 1, 4, 2, 3, 2], ring(Axis::X)), RingOfOne { axis: Axis::X });
    assert_eq!(wrong([4, 1, 4, 2, 3, 2], ring(Axis::C)), RingOfOneLink { axis: Axis::C });
    // With longer axes, the product would exceed 32 bits; it is already more than a job can have.
    assert_eq!(wrong([256, 256, 256, 2, 3, 2], none), TooManyNodes { nodes: 12 << 24, limit: 1 << 24 });
    let shape = TofuShape::of_groups([4, 4, 4]).unwrap();
    assert_eq!(shape.coordinates(768), Err(NoSuchNode { node: 768, nodes: 768 }));
    assert_eq!(shape.hops(0, 768, None), Err(NoSuchNode { node: 768, nodes: 768 }));
    let outside = at([0, 4, 9, 0, 0, 0]);
    assert_eq!(shape.node(outside), Err(Outside { coordinates: outside, axis: Axis::Y, length: 4 }));
    let path = Path { a: 0, b: 3, c: 0 };
    assert_eq!(shape.route(0, 1, Some(path)).unwrap_err(), NoSuchPath { path, axis: Axis::B, length: 3 });
    assert_eq!(
        rdma_fabric::FabricError::from(Empty { axis: Axis::X }).to_string(),
        "setting topology: axis X has length 0; give it at least one node"
    );
}

#[test]
fn systems_have_their_published_numbers_of_nodes() {
    for system in System::ALL.iter().chain([&System::FUGAKU]) {
        assert_eq!(system.shape().nodes(), system.nodes, "{}", system.name);
        assert_eq!(system.groups.iter().product::<u32>() * 12, system.nodes, "{}", system.name);
    }
    let nodes = System::ALL.map(|system| system.nodes);
    assert_eq!(nodes, [82_944, 24, 36, 1_080]);
    assert!(System::ALL.iter().all(|system| system.tofu < 3), "TofuD's stand apart");
    assert_eq!((System::FUGAKU.tofu, System::FUGAKU.nodes), (3, 158_976));
    let k = System::K.shape();
    assert_eq!(k.to_string(), "24x18mx16x2mx3x2m");
    assert_eq!(Axis::ALL.map(|axis| k.is_ring(axis)), [true, false, true, false, true, false]);
    // The distances are those of the plain torus of the same lengths.
    let plain = tofu2_virt::Torus::k_computer();
    for (a, b) in [(0, 82_943), (12_345, 67_890), (7, 40_000)] {
        assert_eq!(k.hops(a, b, None), Ok(plain.hops(a, b)));
    }
}
