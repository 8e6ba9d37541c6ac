use super::*;
use std::collections::VecDeque;

fn parameters(rings: i32, branches: usize) -> Parameters {
    Parameters {
        broadcast_rings: rings,
        broadcast_branches: branches,
        combine_rings: rings,
        combine_branches: branches,
        ..Parameters::default()
    }
}

fn topologies() -> Vec<Topology> {
    b" idsm123456789tfh".iter().map(|letter| Topology::from_letter(*letter).expect("a topology")).collect()
}

/// Returns each member's neighbours.
fn broadcast(topology: Topology, parameters: &Parameters, members: usize, root: usize) -> Vec<Neighbours> {
    (0..members).map(|me| Position { members, me, root }.broadcast(topology, parameters)).collect()
}

fn combine(topology: Topology, parameters: &Parameters, members: usize, root: usize) -> Vec<Neighbours> {
    (0..members).map(|me| Position { members, me, root }.combine(topology, parameters)).collect()
}

/// Checks that the root reaches every member by exactly one message, and that both ends of each
/// message agree; returns the number of messages on the longest path.
fn depth(all: &[Neighbours], root: usize) -> usize {
    let mut depths = vec![None; all.len()];
    depths[root] = Some(0);
    let mut queue = VecDeque::from([root]);
    assert_eq!(all[root].parent, None);
    while let Some(member) = queue.pop_front() {
        for child in &all[member].children {
            assert_eq!(depths[*child], None, "member {child} is reached twice: {all:?}");
            assert_eq!(all[*child].parent, Some(member), "{all:?}");
            depths[*child] = depths[member].map(|depth| depth + 1);
            queue.push_back(*child);
        }
    }
    assert!(depths.iter().all(Option::is_some), "from {root}: {all:?}");
    assert_eq!(all.iter().map(|one| one.children.len()).sum::<usize>(), all.len() - 1);
    depths.into_iter().flatten().max().unwrap_or(0)
}

fn children(all: &[Neighbours]) -> Vec<&[usize]> {
    all.iter().map(|one| &one.children[..]).collect()
}

#[test]
fn every_member_but_the_root_has_one_message() {
    for members in 1..=33 {
        for topology in topologies() {
            for parameters in [1, -1, 2, -3, 40].map(|rings: i32| parameters(rings, rings.unsigned_abs() as usize)) {
                for root in [0, members / 2, members - 1] {
                    depth(&broadcast(topology, &parameters, members, root), root);
                    depth(&combine(topology, &parameters, members, root), root);
                    let back: Vec<_> =
                        (0..members).map(|me| Position { members, me, root }.back(topology, &parameters)).collect();
                    assert_eq!(back, broadcast(topology, &parameters, members, root));
                }
            }
        }
    }
}

#[test]
fn the_longest_ways_are_as_long_as_they_should_be() {
    let defaults = Parameters::default();
    let of = |topology, parameters: &Parameters, members| depth(&broadcast(topology, parameters, members, 0), 0);
    for members in 2..40usize {
        // The depth of a binomial tree is the maximum number of bits set in a distance.
        let bits = (0..members).map(|distance| distance.count_ones() as usize).max().expect("a member");
        assert_eq!(of(Topology::Default, &defaults, members), bits);
        assert_eq!(of(Topology::Hypercube, &defaults, members), bits);
        assert_eq!(of(Topology::Full, &defaults, members), 1);
        assert_eq!(of(Topology::IncreasingRing, &defaults, members), members - 1);
        assert_eq!(of(Topology::DecreasingRing, &defaults, members), members - 1);
        assert_eq!(of(Topology::SplitRing, &defaults, members), members / 2);
        for rings in 1..members {
            let longest = (members - 1).div_ceil(rings);
            assert_eq!(of(Topology::MultiRing, &parameters(rings as i32, 1), members), longest);
            assert_eq!(of(Topology::MultiRing, &parameters(-(rings as i32), 1), members), longest);
        }
        assert_eq!(of(Topology::MultiRing, &parameters(1000, 1), members), 1);
    }
}

#[test]
fn broadcasts_go_the_ways_of_the_standard() {
    let of = |letter, rings, branches, members, root| {
        let topology = Topology::from_letter(letter).expect("a topology");
        broadcast(topology, &parameters(rings, branches), members, root)
    };
    assert_eq!(children(&of(b'i', 1, 1, 4, 2)), [&[1][..], &[], &[3], &[0]]);
    assert_eq!(children(&of(b'd', 1, 1, 4, 2)), [&[3][..], &[0], &[1], &[]]);
    // The path to +1 comes first and has one more member.
    assert_eq!(children(&of(b's', 1, 1, 6, 0)), [&[1, 5][..], &[2], &[3], &[], &[], &[4]]);
    assert_eq!(children(&of(b's', 1, 1, 2, 1)), [&[][..], &[0]]);
    // Paths of 3, 2 and 2.
    assert_eq!(children(&of(b'm', 3, 1, 8, 0)), [&[1, 4, 6][..], &[2], &[3], &[], &[5], &[], &[7], &[]]);
    assert_eq!(children(&of(b'm', -3, 1, 8, 0)), [&[7, 4, 2][..], &[], &[1], &[], &[3], &[], &[5], &[6]]);
    assert_eq!(children(&of(b'f', 1, 1, 4, 1)), [&[][..], &[2, 3, 0], &[], &[]]);
    // The greatest power of two comes first.
    assert_eq!(children(&of(b'1', 1, 1, 6, 0)), [&[4, 2, 1][..], &[], &[3], &[], &[5], &[]]);
    assert_eq!(of(b' ', 1, 1, 6, 4), of(b'1', 1, 1, 6, 4));
    // Two branches make a tree in base 3.
    assert_eq!(children(&of(b'2', 1, 1, 8, 0)), [&[3, 6, 1, 2][..], &[], &[], &[4, 5], &[], &[], &[7], &[]]);
    assert_eq!(of(b't', 1, 2, 8, 3), of(b'2', 1, 1, 8, 3));
    assert_eq!(children(&of(b'9', 1, 1, 4, 3)), [&[][..], &[], &[], &[0, 1, 2]]);
    // By exclusive or with the root's number, the lowest bit first.
    assert_eq!(children(&of(b'h', 1, 1, 8, 5)), [&[][..], &[], &[], &[], &[6, 0], &[4, 7, 1], &[2], &[3]]);
    assert_eq!(of(b'h', 1, 1, 6, 2), of(b'1', 1, 1, 6, 2));
}

#[test]
fn combines_go_the_ways_of_the_standard() {
    let of = |letter, rings, branches, members, root| {
        let topology = Topology::from_letter(letter).expect("a topology");
        combine(topology, &parameters(rings, branches), members, root)
    };
    // Each member sends to the next one, starting with the one after the destination.
    assert_eq!(children(&of(b'i', 1, 1, 4, 2)), [&[3][..], &[0], &[1], &[]]);
    assert_eq!(children(&of(b'd', 1, 1, 4, 2)), [&[1][..], &[], &[3], &[0]]);
    // Rings of 2, 2 and 3 members: the furthest ring is the longest.
    assert_eq!(children(&of(b'm', 3, 1, 8, 0)), [&[7, 5, 3][..], &[], &[1], &[2], &[], &[4], &[], &[6]]);
    assert_eq!(children(&of(b'm', -3, 1, 8, 0)), [&[1, 3, 5][..], &[2], &[], &[4], &[], &[6], &[7], &[]]);
    assert_eq!(of(b's', 1, 1, 9, 4), of(b'm', 2, 1, 9, 4));
    assert_eq!(children(&of(b'f', 1, 1, 4, 1)), [&[][..], &[2, 3, 0], &[], &[]]);
    // The nearest child comes first.
    assert_eq!(children(&of(b'1', 1, 1, 6, 0)), [&[1, 2, 4][..], &[], &[3], &[], &[5], &[]]);
    assert_eq!(children(&of(b't', 1, 2, 8, 0)), [&[1, 2, 3, 6][..], &[], &[], &[4, 5], &[], &[], &[7], &[]]);
    assert_eq!(of(b'h', 1, 1, 8, 5), of(b'1', 1, 1, 8, 5));
}
