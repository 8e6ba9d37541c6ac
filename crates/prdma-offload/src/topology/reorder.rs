//! New numbers, with which neighbours share nodes (`reorder = true`).

use super::{
    Cartesian, Topology, TopologyError,
    place::{Traffic, greedy},
    table::Record,
    verdict::agreed,
};
use crate::publish::{Published, publish};
use rdma_fabric::{Group, GroupMemory, Result};
use std::collections::BTreeMap;

impl Cartesian {
    /// A group of the same members, numbered so that each node has a block of the grid, and the
    /// [topology](Cartesian::topology) of this member's new number, [`Group::me`]. Collective over `group`, which is as
    /// large as the grid.
    ///
    /// Blocks are those that part the fewest pairs of neighbours. Numbers stay as they are if the nodes have different
    /// numbers of members, no block of a node's size divides the grid, or no fewer neighbours would be on other nodes.
    ///
    /// # Errors
    /// [`TopologyError::WrongMembers`]; as [`Group::split`].
    pub async fn reordered(&self, group: &mut Group) -> Result<(Group, Topology), TopologyError> {
        self.fits(group)?;
        let me = group.me();
        let vertex = self.in_blocks(&nodes(group)?).map_or(me, |vertices| vertices[me]);
        let group = renumbered(group, vertex).await?;
        let topology = self.topology(group.me());
        Ok((group, topology))
    }
}

impl Topology {
    /// A group of the same members, numbered so that members that exchange much share a node, and the topology of this
    /// member's new number, [`Group::me`]: the one that the member with that number had. Collective over the group that
    /// the topology is for.
    ///
    /// The first member gets all tables and fills node after node: with the least number that is left, then again and
    /// again with the one that exchanges most with those there. An edge counts as its weights at both ends, or as 1 at
    /// each. Numbers stay as they are if no less would go between nodes.
    ///
    /// # Errors
    /// [`TopologyError::Failed`] at the others for an error of one member. As [`Group::memory`], [`Group::split`].
    pub async fn reordered(&self, group: &mut Group) -> Result<(Group, Topology), TopologyError> {
        let headers = group.memory(Published::BYTES).await?;
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
        // Nobody publishes before everybody has read its number.
        group.barrier().await?;
        let table = publish(group, &headers, &records, &[vertex]).await;
        let table = agreed(group, table.map_err(TopologyError::from)).await?;
        let topology = Topology::from_records(&table.concat());
        Ok((renumbered(group, vertex).await?, topology))
    }
}

/// Write each member its new number.
async fn give(group: &Group, words: &GroupMemory, tables: &[Vec<Record>]) -> Result<()> {
    let nodes = nodes(group)?;
    let vertices = greedy(&traffic(tables), &nodes).unwrap_or_else(|| (0..nodes.len()).collect());
    let fabric = group.fabric();
    for (member, vertex) in vertices.iter().enumerate() {
        let word = fabric.remote_word::<u64>(words.at(group.rank(member)?, 0)?)?;
        fabric.put_word(&word, *vertex as u64).await?;
    }
    fabric.flush_all().await
}

fn traffic(tables: &[Vec<Record>]) -> Traffic {
    let mut traffic: Traffic = vec![BTreeMap::new(); tables.len()];
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

/// The node of each member.
fn nodes(group: &Group) -> Result<Vec<usize>> {
    (0..group.len()).map(|member| Ok(group.fabric().node(group.rank(member)?)?.index())).collect()
}

/// The same members, each with its vertex as number.
async fn renumbered(group: &mut Group, vertex: usize) -> Result<Group, TopologyError> {
    let member = group.me();
    group.split(Some(0), vertex as u64).await?.ok_or(TopologyError::Failed { member })
}
