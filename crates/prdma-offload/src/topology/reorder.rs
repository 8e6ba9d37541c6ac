//! Renumbering, such that neighbours share nodes (`reorder = true`).
//!
//! The part of a topology that is assigned to a node is computed deterministically, with the same
//! result at every member with the same data.

use super::{Cartesian, Record, Topology, TopologyError, agreement::agreed, cartesian::digits};
use crate::{
    init::compiled_here,
    nodes::Nodes,
    publish::{TableHeader, publish},
};
use rdma_fabric::{Group, GroupMemory, Result};
use std::collections::HashMap;

impl Cartesian {
    /// Makes a group of the same members, numbered so that each node has a block of the grid, and
    /// the [topology](Cartesian::topology) of this member's new number, [`Group::me`]. Collective
    /// over `group`, which is as large as the grid.
    ///
    /// Blocks are chosen to separate the fewest pairs of neighbours. Numbers are unchanged if the
    /// nodes have different numbers of members, no block of a node's size divides the grid, or the
    /// number of neighbours on other nodes would not decrease.
    ///
    /// # Errors
    /// [`TopologyError::WrongMembers`]; as [`Group::split`].
    pub fn reordered<'a>(
        &'a self,
        group: &'a mut Group,
    ) -> impl Future<Output = Result<(Group, Topology), TopologyError>> {
        compiled_here(self.renumber(group))
    }

    async fn renumber(&self, group: &mut Group) -> Result<(Group, Topology), TopologyError> {
        self.fits(group)?;
        let me = group.me();
        let vertex = self.in_blocks(&Nodes::of_group(group)?).map_or(me, |vertices| vertices[me]);
        let group = renumbered(group, vertex).await?;
        let topology = self.topology(group.me());
        Ok((group, topology))
    }
}

impl Topology {
    /// Makes a group of the same members, numbered so that members that exchange much data share a
    /// node, and the topology of this member's new number, [`Group::me`]: the topology that the
    /// member with that number had. Collective over the group to which the topology applies.
    ///
    /// The first member reads all tables and fills one node after the other: with the lowest
    /// remaining number, then repeatedly with the one that exchanges most with those already on the
    /// node. An edge counts as its weights at both ends, or as 1 at each. Numbers are unchanged if
    /// the traffic between nodes would not decrease.
    ///
    /// # Errors
    /// [`TopologyError::Failed`] at all others if one member has an error. As [`Group::memory`],
    /// [`Group::split`].
    pub fn reordered<'a>(
        &'a self,
        group: &'a mut Group,
    ) -> impl Future<Output = Result<(Group, Topology), TopologyError>> {
        compiled_here(self.renumber(group))
    }

    async fn renumber(&self, group: &mut Group) -> Result<(Group, Topology), TopologyError> {
        let headers = group.memory(TableHeader::BYTES).await?;
        let records = self.records();
        let all: Vec<usize> = if group.me() == 0 { (0..group.len()).collect() } else { Vec::new() };
        let tables = publish(group, &headers, &records, &all).await;
        let given = match (tables, group.me()) {
            (Ok(tables), 0) => give(group, &headers, &tables).await,
            (tables, _) => tables.map(drop),
        };
        agreed(group, given.map_err(TopologyError::from)).await?;
        let fabric = group.fabric();
        let vertex = fabric.load(&fabric.local_word::<u64>(headers.at(fabric.rank(), 0)?)?)? as usize;
        // No member publishes until all have read their numbers.
        group.barrier().await?;
        let table = publish(group, &headers, &records, &[vertex]).await;
        let table = agreed(group, table.map_err(TopologyError::from)).await?;
        let topology = Topology::from_records(&table.concat());
        Ok((renumbered(group, vertex).await?, topology))
    }
}

/// Writes to each member its new number.
async fn give(group: &Group, words: &GroupMemory, tables: &[Vec<Record>]) -> Result<()> {
    let nodes = Nodes::of_group(group)?;
    let vertices = greedy(&traffic(tables), &nodes).unwrap_or_else(|| (0..nodes.of.len()).collect());
    let fabric = group.fabric();
    for (member, vertex) in vertices.iter().enumerate() {
        let word = fabric.remote_word::<u64>(words.at(group.rank(member)?, 0)?)?;
        fabric.put_word(&word, *vertex as u64).await?;
    }
    fabric.flush_all().await
}

fn traffic(tables: &[Vec<Record>]) -> Traffic {
    let mut traffic: Traffic = vec![HashMap::new(); tables.len()];
    for (vertex, table) in tables.iter().enumerate() {
        for record in table {
            let Some(edge) = record.edge().filter(|edge| edge.member < tables.len() && edge.member != vertex) else {
                continue;
            };
            for (a, b) in [(vertex, edge.member), (edge.member, vertex)] {
                *traffic[a].entry(b).or_default() += record.counts();
            }
        }
    }
    traffic
}

/// Makes a group of the same members, each numbered by its vertex. Collective.
async fn renumbered(group: &mut Group, vertex: usize) -> Result<Group, TopologyError> {
    let member = group.me();
    group.split(Some(0), vertex as u64).await?.ok_or(TopologyError::Failed { member })
}

/// The traffic of each vertex with every other one, summed over both directions, by vertex.
pub(super) type Traffic = Vec<HashMap<usize, u64>>;

impl Cartesian {
    /// Returns the vertex of each member: nodes take blocks of the grid. `None` if nodes differ in
    /// size, no block of a node's size divides the grid, or the number of neighbours on other nodes
    /// would not decrease.
    pub(super) fn in_blocks(&self, nodes: &Nodes) -> Option<Vec<usize>> {
        let size = nodes.members.first()?.len();
        if nodes.members.iter().any(|members| members.len() != size) {
            return None;
        }
        let block = self.block(size)?;
        let grid: Vec<usize> = self.dims().iter().zip(&block).map(|(extent, block)| extent / block).collect();
        let mut vertices = vec![0; nodes.of.len()];
        for (node, members) in nodes.members.iter().enumerate() {
            let corner = digits(node, &grid);
            for (local, member) in members.iter().enumerate() {
                let at = digits(local, &block);
                let number = |number: usize, dim: usize| number * self.dims()[dim] + corner[dim] * block[dim] + at[dim];
                vertices[*member] = (0..block.len()).fold(0, number);
            }
        }
        let unchanged: Vec<usize> = (0..nodes.of.len()).collect();
        (self.between_nodes(nodes, &vertices) < self.between_nodes(nodes, &unchanged)).then_some(vertices)
    }

    /// Returns the extents of a block of `size` members that divides the grid so that the fewest
    /// pairs of neighbours are in different blocks; among several such blocks, the one with the
    /// smallest first extent, then the smallest second, and so on.
    fn block(&self, size: usize) -> Option<Vec<usize>> {
        let mut blocks = vec![(size, Vec::new())];
        for extent in self.dims() {
            let longer = |(left, block): (usize, Vec<usize>)| {
                let fits = move |part: &usize| left.is_multiple_of(*part) && extent.is_multiple_of(*part);
                (1..=left).filter(fits).map(move |part| (left / part, [&block[..], &[part]].concat()))
            };
            blocks = blocks.into_iter().flat_map(longer).collect();
        }
        // Each plane between blocks separates as many pairs as it has members.
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

    /// Returns the number of pairs of neighbours on different nodes.
    fn between_nodes(&self, nodes: &Nodes, vertices: &[usize]) -> usize {
        let node = by_vertex(nodes, vertices);
        let next = |vertex: usize, dim: usize| self.shift(vertex, dim, 1).ok()?.1;
        let pairs = (0..nodes.of.len()).flat_map(|vertex| {
            (0..self.dims().len()).filter_map(move |dim| next(vertex, dim)).map(move |other| (vertex, other))
        });
        pairs.filter(|(a, b)| node[*a] != node[*b]).count()
    }
}

/// Returns the vertex of each member. Each node in turn takes the lowest remaining vertex, then
/// repeatedly the one that exchanges most with those it already has, the lowest one in case of a
/// tie. `None` if the traffic between nodes would not decrease.
pub(super) fn greedy(traffic: &Traffic, nodes: &Nodes) -> Option<Vec<usize>> {
    let mut vertices = vec![0; nodes.of.len()];
    let mut left: Vec<bool> = vec![true; nodes.of.len()];
    let mut least = 0;
    for members in &nodes.members {
        let mut taken = Vec::with_capacity(members.len());
        let mut gains: HashMap<usize, u64> = HashMap::new();
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
    let unchanged: Vec<usize> = (0..nodes.of.len()).collect();
    (cut(traffic, nodes, &vertices) < cut(traffic, nodes, &unchanged)).then_some(vertices)
}

/// Returns twice the traffic between nodes.
fn cut(traffic: &Traffic, nodes: &Nodes, vertices: &[usize]) -> u128 {
    let node = by_vertex(nodes, vertices);
    let all = traffic.iter().enumerate();
    let edges = all.flat_map(|(a, others)| others.iter().map(move |(b, weight)| (a, *b, *weight)));
    edges.filter(|(a, b, _)| node[*a] != node[*b]).map(|(_, _, weight)| u128::from(weight)).sum()
}

/// Returns the node of each vertex.
fn by_vertex(nodes: &Nodes, vertices: &[usize]) -> Vec<usize> {
    let mut node = vec![0; nodes.of.len()];
    vertices.iter().zip(&nodes.of).for_each(|(vertex, at)| node[*vertex] = *at);
    node
}
