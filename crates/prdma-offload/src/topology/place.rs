//! Which part of a topology a node plays. All of it is arithmetic, and the same at every member that knows the same.

use super::{Cartesian, cartesian::digits};
use std::collections::BTreeMap;

/// What is exchanged with each other vertex, in both directions together, by vertex.
pub(super) type Traffic = Vec<BTreeMap<usize, u64>>;

/// The members of each node, in order of first members.
pub(super) fn by_node(nodes: &[usize]) -> Vec<Vec<usize>> {
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut number: BTreeMap<usize, usize> = BTreeMap::new();
    for (member, node) in nodes.iter().enumerate() {
        let at = *number.entry(*node).or_insert(order.len());
        if at == order.len() {
            order.push(Vec::new());
        }
        order[at].push(member);
    }
    order
}

impl Cartesian {
    /// For each member its vertex: nodes take blocks of the grid. `None` if nodes differ in size, no block of a node's
    /// size divides the grid, or as many neighbours as before would be on other nodes.
    pub(super) fn in_blocks(&self, nodes: &[usize]) -> Option<Vec<usize>> {
        let by_node = by_node(nodes);
        let size = by_node.first()?.len();
        if by_node.iter().any(|members| members.len() != size) {
            return None;
        }
        let block = self.block(size)?;
        let grid: Vec<usize> = self.dims().iter().zip(&block).map(|(extent, block)| extent / block).collect();
        let mut vertices = vec![0; nodes.len()];
        for (node, members) in by_node.iter().enumerate() {
            let corner = digits(node, &grid);
            for (local, member) in members.iter().enumerate() {
                let at = digits(local, &block);
                let number = |number: usize, dim: usize| number * self.dims()[dim] + corner[dim] * block[dim] + at[dim];
                vertices[*member] = (0..block.len()).fold(0, number);
            }
        }
        let unchanged: Vec<usize> = (0..nodes.len()).collect();
        (self.between_nodes(nodes, &vertices) < self.between_nodes(nodes, &unchanged)).then_some(vertices)
    }

    /// Extents of a block of `size` members that divides the grid so that the fewest pairs of neighbours are in
    /// different blocks; of several the one with the least first extent, then the least second, and so on.
    fn block(&self, size: usize) -> Option<Vec<usize>> {
        let mut blocks = vec![(size, Vec::new())];
        for extent in self.dims() {
            let longer = |(left, block): (usize, Vec<usize>)| {
                let fits = move |part: &usize| left.is_multiple_of(*part) && extent.is_multiple_of(*part);
                (1..=left).filter(fits).map(move |part| (left / part, [&block[..], &[part]].concat()))
            };
            blocks = blocks.into_iter().flat_map(longer).collect();
        }
        // Each plane between blocks cuts as many pairs as the grid is wide there.
        let outside = |block: &Vec<usize>| {
            let dims = block.iter().zip(self.dims()).zip(self.periodic());
            let cut = dims.map(|((part, extent), periodic)| match extent / part {
                1 => 0,
                blocks => (blocks - usize::from(!periodic)) * (self.members() / extent),
            });
            cut.sum::<usize>()
        };
        blocks.into_iter().filter(|(left, _)| *left == 1).map(|(_, block)| block).min_by_key(outside)
    }

    /// How many pairs of neighbours are on different nodes.
    fn between_nodes(&self, nodes: &[usize], vertices: &[usize]) -> usize {
        let mut node = vec![0; nodes.len()];
        vertices.iter().zip(nodes).for_each(|(vertex, at)| node[*vertex] = *at);
        let next = |vertex: usize, dim: usize| self.shift(vertex, dim, 1).ok()?.1;
        let pairs = (0..nodes.len()).flat_map(|vertex| {
            (0..self.dims().len()).filter_map(move |dim| next(vertex, dim)).map(move |other| (vertex, other))
        });
        pairs.filter(|(a, b)| node[*a] != node[*b]).count()
    }
}

/// For each member its vertex: each node takes in turn the least vertex that is left, then again and again the one that
/// exchanges most with those it has, of several the least. `None` if as much as before would go between nodes.
pub(super) fn greedy(traffic: &Traffic, nodes: &[usize]) -> Option<Vec<usize>> {
    let mut vertices = vec![0; nodes.len()];
    let mut left: Vec<bool> = vec![true; nodes.len()];
    let mut least = 0;
    for members in by_node(nodes) {
        let mut taken = Vec::with_capacity(members.len());
        let mut gains: BTreeMap<usize, u64> = BTreeMap::new();
        while taken.len() < members.len() {
            while !left[least] {
                least += 1;
            }
            let best = gains.iter().max_by_key(|(vertex, gain)| (**gain, core::cmp::Reverse(**vertex)));
            let next = best.map_or(least, |(vertex, _)| *vertex);
            left[next] = false;
            gains.remove(&next);
            for (other, weight) in traffic[next].iter().filter(|(other, _)| left[**other]) {
                *gains.entry(*other).or_default() += weight;
            }
            taken.push(next);
        }
        taken.sort_unstable();
        members.iter().zip(taken).for_each(|(member, vertex)| vertices[*member] = vertex);
    }
    let unchanged: Vec<usize> = (0..nodes.len()).collect();
    (cut(traffic, nodes, &vertices) < cut(traffic, nodes, &unchanged)).then_some(vertices)
}

/// How much goes between nodes, twice.
fn cut(traffic: &Traffic, nodes: &[usize], vertices: &[usize]) -> u128 {
    let mut node = vec![0; nodes.len()];
    vertices.iter().zip(nodes).for_each(|(vertex, at)| node[*vertex] = *at);
    let all = traffic.iter().enumerate();
    let edges = all.flat_map(|(a, others)| others.iter().map(move |(b, weight)| (a, *b, *weight)));
    edges.filter(|(a, b, _)| node[*a] != node[*b]).map(|(_, _, weight)| u128::from(weight)).sum()
}
