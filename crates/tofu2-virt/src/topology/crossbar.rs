//! Networks of crossbars: nodes in a rectangle, a crossbar for each row and each column.

#![deny(clippy::arithmetic_side_effects)]

use rdma_fabric::FabricError;
use std::fmt;

/// The maximum number of nodes that the two sides of a [`Crossbar`] have together.
const MOST_PORTS: u32 = 31;

/// A two-dimensional crossbar network, as SR8000's: `x` by `y` nodes, each row joined by an
/// *x-crossbar* and each column by a *y-crossbar*. With `y` 1 there is one crossbar. Node numbers
/// count along x fastest.
///
/// A message goes first through its row's crossbar, then through that of its target's column, each
/// of which is a hop: one hop within a row or column, otherwise two. A crossbar can connect all its
/// inputs to different outputs at the same time, so messages contend only for the link from a
/// node's router to a crossbar, the link from a crossbar to a router, and the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Crossbar {
    x: u32,
    y: u32,
}

impl fmt::Display for Crossbar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} crossbar", self.x, self.y)
    }
}

impl Crossbar {
    /// Creates a network of `x` nodes in each of `y` rows.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for a side of length 0, or sides of more than 31 nodes together.
    pub fn new(x: u32, y: u32) -> Result<Self, FabricError> {
        let wrong = |problem: String| Err(FabricError::setting("crossbar", problem));
        if x == 0 || y == 0 {
            return wrong(format!("{x} by {y} nodes; give each side at least one"));
        }
        if x.saturating_add(y) > MOST_PORTS {
            return wrong(format!("{x} by {y} nodes; the sides may have {MOST_PORTS} nodes together"));
        }
        Ok(Crossbar { x, y })
    }

    /// Returns the lengths of the sides: nodes of a row, nodes of a column.
    pub fn sides(&self) -> [u32; 2] {
        [self.x, self.y]
    }

    /// Returns the number of nodes.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the sides have at most `MOST_PORTS` nodes together, and none has length 0"
    )]
    pub fn nodes(&self) -> u32 {
        self.x * self.y
    }

    /// Returns a node's position in its row and in its column.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the sides have at most `MOST_PORTS` nodes together, and none has length 0"
    )]
    pub fn coordinates(&self, node: u32) -> [u32; 2] {
        [node % self.x, node / self.x]
    }

    /// Returns the number of crossbars that a message passes through: 0 within a node, 1 within a
    /// row or column, otherwise 2.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "at most 2")]
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.coordinates(from), self.coordinates(to));
        u32::from(from[0] != to[0]) + u32::from(from[1] != to[1])
    }
}

/// The queries of the event path. Switches are places after the nodes: first the crossbars of the
/// rows, then those of the columns. The links of a place are the ports of the two crossbars of a
/// node: link `i` joins the `i`-th node of a row with the row's crossbar, in either direction, and
/// link `x + j` the `j`-th node of a column with the column's.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "the sides have at most `MOST_PORTS` nodes together, and none has length 0"
)]
impl Crossbar {
    /// Returns the number of nodes and switches.
    pub(super) fn places(&self) -> u32 {
        self.nodes() + self.x + self.y
    }

    /// Returns the number of links of a place, of which a node uses two.
    pub(super) fn links(&self) -> u8 {
        (self.x + self.y) as u8
    }

    /// Returns the place at the other end of a link; the place itself if there is no such link.
    pub(super) fn across(&self, place: u32, link: u8) -> u32 {
        let (nodes, link) = (self.nodes(), u32::from(link));
        if place < nodes {
            let [i, j] = self.coordinates(place);
            return match link {
                _ if link == i => nodes + j,
                _ if link == self.x + j => nodes + self.y + i,
                _ => place,
            };
        }
        match place - nodes {
            j if j < self.y && link < self.x => j * self.x + link,
            column if column >= self.y && link >= self.x => (link - self.x) * self.x + (column - self.y),
            _ => place,
        }
    }

    /// Returns the next link of a message at a place, or `None` if it has arrived.
    #[inline]
    pub(super) fn next(&self, place: u32, to: u32) -> Option<u8> {
        let [i, j] = self.coordinates(to);
        let nodes = self.nodes();
        let link = match place {
            _ if place == to => return None,
            node if node < nodes => match self.coordinates(node) {
                [at, row] if at == i => self.x + row,
                [at, _] => at,
            },
            row if row < nodes + self.y => i,
            _ => self.x + j,
        };
        Some(link as u8)
    }

    /// Returns whether a place is a switch. A hop ends at a node, so the link to a switch adds no
    /// latency.
    pub(super) fn is_switch(&self, place: u32) -> bool {
        place >= self.nodes()
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn sides_have_limits() {
        assert_eq!(Crossbar::new(8, 2).unwrap().to_string(), "8x2 crossbar");
        assert!(Crossbar::new(30, 1).is_ok());
        for (x, y) in [(0, 1), (1, 0), (31, 1), (16, 16), (u32::MAX, 1)] {
            assert!(Crossbar::new(x, y).is_err(), "{x} by {y}");
        }
    }

    #[test]
    fn rows_come_first() {
        let crossbar = Crossbar::new(8, 2).unwrap();
        assert_eq!(crossbar.coordinates(9), [1, 1]);
        assert_eq!([(0, 0), (0, 7), (0, 8), (0, 9)].map(|(a, b)| crossbar.hops(a, b)), [0, 1, 1, 2]);
        // From (0, 0) to (1, 1): row 0's crossbar, node (1, 0), column 1's crossbar.
        let mut at = 0;
        let mut places = vec![];
        while let Some(link) = crossbar.next(at, 9) {
            at = crossbar.across(at, link);
            places.push(at);
        }
        assert_eq!(places, [16, 1, 16 + 2 + 1, 9]);
    }
}
