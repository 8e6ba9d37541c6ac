//! Checks whether nodes fill a box, as required by hardware that broadcasts or synchronises by rows
//! and columns.

use super::Map;

impl Map {
    /// Returns whether these nodes are all nodes of a box: of an interval of coordinates along each
    /// axis, so that a line, a rectangle and a cuboid are boxes. An interval of a ring may wrap
    /// around. The order of the nodes does not matter, and a node may be given twice; an empty list
    /// does not fill a box.
    pub(crate) fn fills_box(&self, nodes: &[u32]) -> bool {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() {
            return false;
        }
        // All nodes are in the product of the sets of their coordinates along each axis; they fill
        // it if it contains no others.
        let mut product = 1u64;
        for (axis, extent) in self.extents().iter().enumerate() {
            let mut along: Vec<u32> = nodes.iter().map(|&node| self.along(node, axis)).collect();
            along.sort_unstable();
            along.dedup();
            let gaps = along.windows(2).filter(|pair| pair[1] - pair[0] > 1).count();
            let over_the_end = extent.wraps && along.first() == Some(&0) && along.last() == Some(&(extent.length - 1));
            if gaps > usize::from(over_the_end) {
                return false;
            }
            product *= along.len() as u64;
        }
        product == nodes.len() as u64
    }
}
