//! The choice of the virtual channel that a packet takes on its next link, such that full buffers
//! can't wait for each other in a cycle.
//!
//! Channels of a link come in pairs. A packet begins each axis in the first of a pair and moves to
//! the second where the link closes a ring, for as long as it continues straight: the dateline
//! rule. A route with a chosen path takes in-group links twice, before and after the way between
//! groups, and the second time it uses a second pair. So the channels of any route ascend in one
//! order: B, C, A of the first pair, X, Y, Z, then A, C, B of the second.

use super::super::topology::Hop;

/// Returns the channel for `hop` of a packet that has arrived over link `before.0` in channel
/// `before.1`; `wraps` is true if the hop's link closes a ring.
#[inline]
pub(super) fn channel(before: (u8, u8), hop: Hop, wraps: bool) -> u8 {
    let pair = 2 * u8::from(hop.is_second_leg());
    let straight = before.0 == hop.link && before.1 & 2 == pair;
    pair + u8::from(wraps || straight && before.1 & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::topology::{
            Choice, Crossbar, Fold, Folding, Map, Path, PathId, Paths, TofuShape, Topology, Torus,
        },
        *,
    };
    use std::collections::{BTreeMap, BTreeSet};

    /// A buffer: the node, the link to it, and the channel.
    type Buffer = (u32, u8, u8);

    /// Returns the buffers that each buffer may wait for, over all routes by all paths, with the
    /// given rule.
    fn waits(
        map: &Map,
        nodes: u32,
        paths: &[PathId],
        rule: impl Fn((u8, u8), Hop, bool) -> u8,
    ) -> BTreeMap<Buffer, BTreeSet<Buffer>> {
        let mut waits: BTreeMap<Buffer, BTreeSet<Buffer>> = BTreeMap::new();
        for (from, to) in
            (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to)
        {
            for &path in paths {
                let (mut at, mut leg, mut held) = (from, 0, None::<Buffer>);
                while let Some(hop) = map.next(at, to, path, leg) {
                    let (next, wraps) = map.over(at, hop.link);
                    let before = held.map_or((map.links(), 0), |(_, link, channel)| (link, channel));
                    let wanted = (next, hop.link, rule(before, hop, wraps));
                    waits.entry(wanted).or_default();
                    if let Some(held) = held.replace(wanted) {
                        waits.entry(held).or_default().insert(wanted);
                    }
                    (at, leg) = (next, hop.leg);
                }
                assert_eq!(at, to);
            }
        }
        waits
    }

    /// Removes buffers that wait for no other until none can be removed. Returns whether none is
    /// left.
    fn can_always_move(mut waits: BTreeMap<Buffer, BTreeSet<Buffer>>) -> bool {
        loop {
            let free: BTreeSet<Buffer> =
                waits.iter().filter(|(_, on)| on.is_empty()).map(|(&buffer, _)| buffer).collect();
            if free.is_empty() {
                return waits.is_empty();
            }
            waits.retain(|buffer, _| !free.contains(buffer));
            waits.values_mut().for_each(|on| on.retain(|buffer| !free.contains(buffer)));
        }
    }

    fn tofu() -> (Map, u32, Vec<PathId>) {
        let shape = TofuShape::new([4, 2, 1, 2, 3, 2], [true, false, false, false, true, false]).unwrap();
        let choice = Choice::new(&shape, Paths::Default).unwrap();
        let map = Map::new(&Topology::Tofu(Fold::new(shape, Folding::Snake), choice));
        (map, shape.nodes(), shape.paths().map(|path: Path| path.try_into().unwrap()).collect())
    }

    #[test]
    fn no_circle_of_full_buffers_by_any_path() {
        let (map, nodes, paths) = tofu();
        assert!(can_always_move(waits(&map, nodes, &paths, channel)));
        for lengths in [&[5u32][..], &[4, 4], &[3, 2, 4]] {
            let torus = Torus::new(lengths).unwrap();
            let map = Map::new(&Topology::Torus(torus.clone()));
            assert!(can_always_move(waits(&map, torus.nodes(), &[PathId::default()], channel)), "{torus}");
        }
        for (x, y) in [(5, 1), (1, 4), (4, 3)] {
            let crossbar = Crossbar::new(x, y).unwrap();
            let map = Map::new(&Topology::Crossbar(crossbar));
            let nodes = crossbar.nodes();
            assert!(can_always_move(waits(&map, nodes, &[PathId::default()], channel)), "{crossbar}");
        }
    }

    #[test]
    #[should_panic(expected = "circle")]
    fn without_a_pair_for_the_second_leg_buffers_wait_in_a_circle() {
        let (map, nodes, paths) = tofu();
        let rule = |before, hop, wraps| channel(before, hop, wraps) & 1;
        assert!(can_always_move(waits(&map, nodes, &paths, rule)), "circle");
    }

    #[test]
    #[should_panic(expected = "circle")]
    fn without_a_dateline_buffers_wait_in_a_circle() {
        let (map, nodes, paths) = tofu();
        let rule = |before, hop, wraps| channel(before, hop, wraps) & 2;
        assert!(can_always_move(waits(&map, nodes, &paths, rule)), "circle");
    }
}
