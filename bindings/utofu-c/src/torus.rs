//! The torus whose nodes the ranks are: coordinates, and paths.
//!
//! Twelve nodes form a group with axes A, B, C of 2, 3 and 2 nodes; groups have coordinates X, Y, Z.
//! Consecutive ranks of a group are neighbours, and so are the last and the first: the walk is a ring.

/// Coordinates X, Y, Z, A, B, C.
pub(crate) type Coords = [u8; 6];

/// Nodes of a group.
const GROUP: u32 = 12;
/// Groups along X and Y; the rest is along Z.
const GROUPS: u32 = 16;

/// A, B, C of the nodes of a group, in the order of ranks. Each differs from the next in one axis.
const WALK: [[u8; 3]; GROUP as usize] = [
    [0, 0, 0],
    [0, 1, 0],
    [0, 2, 0],
    [0, 2, 1],
    [0, 1, 1],
    [0, 0, 1],
    [1, 0, 1],
    [1, 1, 1],
    [1, 2, 1],
    [1, 2, 0],
    [1, 1, 0],
    [1, 0, 0],
];

/// Ranks for which there are coordinates.
pub(crate) const MOST_RANKS: u32 = GROUP * GROUPS * GROUPS * 256;

/// Returns the coordinates of a rank below [`MOST_RANKS`].
pub(crate) fn coords(rank: u32) -> Coords {
    let (group, node) = (rank / GROUP, WALK[(rank % GROUP) as usize]);
    let (x, y, z) = (group % GROUPS, group / GROUPS % GROUPS, group / GROUPS / GROUPS);
    [x as u8, y as u8, z as u8, node[0], node[1], node[2]]
}

/// Returns the rank at some coordinates, if there are `ranks`.
pub(crate) fn rank(coords: Coords, ranks: u32) -> Option<u32> {
    let [x, y, z, a, b, c] = coords;
    let node = WALK.iter().position(|node| *node == [a, b, c])? as u32;
    let [x, y, z] = [x, y, z].map(u32::from);
    if x >= GROUPS || y >= GROUPS {
        return None;
    }
    let rank = ((z * GROUPS + y) * GROUPS + x) * GROUP + node;
    (rank < ranks).then_some(rank)
}

/// A path: A, B, C of the node of a group through which packets pass.
pub(crate) type Path = [u8; 3];

/// Packs a path into a path id; `None` if there is no such node.
pub(crate) fn path_id([a, b, c]: Path) -> Option<u8> {
    (a < 2 && b < 3 && c < 2).then_some(a | b << 1 | c << 3)
}

/// Inverts [`path_id`].
pub(crate) fn path(id: u8) -> Option<Path> {
    let path = [id & 1, id >> 1 & 3, id >> 3 & 1];
    (path_id(path) == Some(id)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_coordinates() {
        for rank in (0..10_000).chain(MOST_RANKS - 100..MOST_RANKS) {
            assert_eq!(super::rank(coords(rank), MOST_RANKS), Some(rank));
        }
        assert_eq!(super::rank(coords(5), 5), None);
        assert_eq!(super::rank([0, 0, 0, 0, 3, 0], 12), None);
        assert_eq!(super::rank([16, 0, 0, 0, 0, 0], 100_000), None);
    }

    #[test]
    fn consecutive_ranks_of_a_group_are_one_hop_apart() {
        for node in 0..12 {
            let (one, other) = (coords(node), coords((node + 1) % 12));
            let differing = one.iter().zip(other).filter(|(a, b)| **a != *b).count();
            assert_eq!(differing, 1, "{node}");
        }
    }

    #[test]
    fn paths_are_packed() {
        let paths: Vec<u8> = (0..=255).filter(|&id| path(id).is_some()).collect();
        assert_eq!(paths.len(), 12);
        assert!(paths.iter().all(|&id| path(id).and_then(path_id) == Some(id)));
        assert_eq!(path_id([2, 0, 0]), None);
    }
}
