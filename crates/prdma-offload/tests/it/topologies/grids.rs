//! Grids, and local properties of graphs.

use prdma_offload::topology::{Cartesian, Edge, Side, Topology, TopologyError, dims_create};
use proptest::prelude::*;

fn grid(dims: &[usize], periodic: bool) -> Cartesian {
    Cartesian::new(dims, &vec![periodic; dims.len()]).expect("a grid")
}

/// Every block arrives in the slot that `opposite` returns, and every slot with a source receives
/// one.
fn paired(members: usize, of: impl Fn(usize) -> Topology, opposite: impl Fn(usize) -> usize) {
    let (mut sent, mut awaited) = (0, 0);
    for me in 0..members {
        let mine = of(me);
        for (slot, edge) in mine.destinations().iter().enumerate() {
            let Some(Edge { member, label }) = *edge else { continue };
            let theirs = of(member);
            assert_eq!(theirs.sources()[opposite(slot)], Some(Edge { member: me, label }), "slot {slot} of {me}");
            // Among several edges between the two members, only this one.
            let same = theirs.sources().iter().filter(|edge| **edge == Some(Edge { member: me, label })).count();
            assert_eq!(same, 1, "slot {slot} of {me}");
            sent += 1;
        }
        awaited += mine.sources().iter().flatten().count();
    }
    assert_eq!(sent, awaited);
}

#[test]
fn rings_and_tori_pair_their_slots() {
    for dims in [&[1][..], &[2], &[3], &[5], &[1, 1], &[2, 1], &[2, 2], &[3, 3], &[1, 4], &[], &[2, 1, 3]] {
        for periodic in [true, false] {
            let grid = grid(dims, periodic);
            paired(grid.members(), |me| grid.topology(me), |slot| slot ^ 1);
            paired(grid.members(), |me| grid.moore(me), |slot| grid.opposite(slot));
        }
    }
}

fn members(edges: &[Option<Edge>]) -> Vec<Option<usize>> {
    edges.iter().map(|edge| edge.map(|edge| edge.member)).collect()
}

#[test]
fn slots_are_in_the_order_of_the_standard() {
    let open = Cartesian::new(&[3, 4], &[false, true]).expect("a grid");
    // Member 4 is at (1, 0): up 0, down 8, left 7 around the ring, right 5.
    assert_eq!(members(open.topology(4).sources()), [Some(0), Some(8), Some(7), Some(5)]);
    assert_eq!(members(open.topology(4).destinations()), [Some(0), Some(8), Some(7), Some(5)]);
    assert_eq!(members(open.topology(0).destinations()), [None, Some(4), Some(3), Some(1)]);
    let corners = [Some(3), Some(0), Some(1), Some(7), Some(5), Some(11), Some(8), Some(9)];
    assert_eq!(members(open.moore(4).destinations()), corners);
    assert_eq!(members(open.moore(0).destinations()), [None, None, None, Some(3), Some(1), Some(7), Some(4), Some(5)]);
    let two = grid(&[2], true).topology(0);
    let edge = |label| Some(Edge { member: 1, label });
    assert_eq!((two.sources(), two.destinations()), (&[edge(1), edge(0)][..], &[edge(0), edge(1)][..]));
}

#[test]
fn labels_count_earlier_slots() {
    let topology = Topology::graph(4, 1, &[3, 1, 3, 3], &[1, 2, 1]).expect("a graph");
    let labels = |edges: &[Option<Edge>]| edges.iter().map(|edge| edge.expect("no border").label).collect::<Vec<_>>();
    assert_eq!(labels(topology.sources()), [0, 0, 1, 2]);
    assert_eq!(labels(topology.destinations()), [0, 0, 1]);
    assert_eq!(topology.source_weights(), None);
    let weighted = topology.clone().with_weights(&[1, 2, 3, 4], &[7, 0, 9]).expect("as many");
    assert_eq!(weighted.source_weights(), Some(&[1, 2, 3, 4][..]));
    assert_eq!(weighted.destination_weights(), Some(&[7, 0, 9][..]));
    let few = TopologyError::Weights { side: Side::Destination, weights: 2, slots: 3 };
    assert_eq!(topology.with_weights(&[1, 2, 3, 4], &[7, 0]), Err(few));
    let nobody = TopologyError::NoSuchMember { side: Side::Source, slot: 1, member: 4, members: 4 };
    assert_eq!(Topology::graph(4, 1, &[0, 4], &[9]), Err(nobody));
    assert_eq!(Topology::graph(4, 4, &[], &[]), Err(TopologyError::NotAMember { member: 4, members: 4 }));
}

#[test]
fn impossible_grids() {
    assert_eq!(Cartesian::new(&[2, 2], &[true]), Err(TopologyError::Dimensions { given: 1, dims: 2 }));
    assert_eq!(Cartesian::new(&[2, 0], &[true; 2]), Err(TopologyError::WrongMembers { wanted: Some(0), members: 0 }));
    assert!(matches!(Cartesian::new(&[1 << 40; 2], &[true; 2]), Err(TopologyError::WrongMembers { wanted: None, .. })));
    let grid = grid(&[2, 3], false);
    assert_eq!(grid.coordinates(6), Err(TopologyError::NotAMember { member: 6, members: 6 }));
    assert_eq!(grid.member(&[0]), Err(TopologyError::Dimensions { given: 1, dims: 2 }));
    assert_eq!(grid.shift(0, 2, 1), Err(TopologyError::NoSuchDim { dim: 2, dims: 2 }));
    assert_eq!(grid.shift(0, 1, i64::MIN), Ok((None, None)));
}

/// All ways to write `members` as a product of non-increasing factors.
fn factorisations(members: usize, dims: usize, most: usize) -> Vec<Vec<usize>> {
    if dims == 0 {
        return if members == 1 { vec![vec![]] } else { vec![] };
    }
    let firsts = (1..=members.min(most)).filter(|first| members.is_multiple_of(*first));
    let with = |first| {
        let rest = factorisations(members / first, dims - 1, first);
        rest.into_iter().map(move |rest| [&[first], &rest[..]].concat())
    };
    firsts.flat_map(with).collect()
}

#[test]
fn extents_are_balanced() {
    for dims in 1..5 {
        for members in 1..200 {
            let best = factorisations(members, dims, members).into_iter().min();
            assert_eq!(dims_create(members, dims).ok(), best, "{members} in {dims}");
        }
    }
    assert_eq!(dims_create(24, 3), Ok(vec![4, 3, 2]));
    assert_eq!(dims_create(1, 0), Ok(vec![]));
    assert_eq!(dims_create(2, 0), Err(TopologyError::WrongMembers { wanted: Some(1), members: 2 }));
    assert_eq!(dims_create(0, 2), Err(TopologyError::WrongMembers { wanted: None, members: 0 }));
    assert_eq!(dims_create(u32::MAX as usize, 2), Ok(vec![65537, 65535]));
}

proptest! {
    #[test]
    fn grids_are_rows_of_rows(shape in prop::collection::vec((1usize..5, any::<bool>()), 0..4), by in -9i64..9) {
        let (dims, periodic): (Vec<usize>, Vec<bool>) = shape.into_iter().unzip();
        let grid = Cartesian::new(&dims, &periodic).expect("a grid");
        let mut all = vec![vec![]];
        for extent in &dims {
            all = all.into_iter().flat_map(|at| (0..*extent).map(move |n| [&at[..], &[n]].concat())).collect();
        }
        for (me, at) in all.iter().enumerate() {
            prop_assert_eq!(&grid.coordinates(me).expect("a member"), at);
            for dim in 0..dims.len() {
                let there = |by: i64| {
                    let mut to: Vec<i64> = at.iter().map(|n| *n as i64).collect();
                    to[dim] += by;
                    if periodic[dim] {
                        to[dim] = to[dim].rem_euclid(dims[dim] as i64);
                    }
                    let found = all.iter().position(|at| at.iter().map(|n| *n as i64).eq(to.iter().copied()));
                    assert_eq!(grid.member(&to), Ok(found));
                    found
                };
                prop_assert_eq!(grid.shift(me, dim, by), Ok((there(-by), there(by))));
                let slots = members(&grid.topology(me).sources()[2 * dim..2 * dim + 2]);
                prop_assert_eq!(slots, [there(-1), there(1)]);
            }
        }
        paired(grid.members(), |me| grid.topology(me), |slot| slot ^ 1);
        paired(grid.members(), |me| grid.moore(me), |slot| grid.opposite(slot));
    }
}
