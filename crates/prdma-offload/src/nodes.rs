//! The distribution of members over nodes.

use rdma_fabric::{Group, Result};
use std::collections::HashMap;

/// The nodes of a group, numbered in the order in which members occupy them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// The node of each member.
    pub(crate) of: Vec<usize>,
    /// The members of each node.
    pub(crate) members: Vec<Vec<usize>>,
}

impl Nodes {
    /// Returns the nodes of all members of `group`.
    ///
    /// # Errors
    /// As [`rdma_fabric::Fabric::node`].
    pub(crate) fn of_group(group: &Group) -> Result<Self> {
        let node = |member| Ok(group.fabric().node(group.rank(member)?)?.index());
        Ok(Nodes::new((0..group.len()).map(node).collect::<Result<Vec<_>>>()?.into_iter()))
    }

    /// Numbers the nodes, given an identifier of each member's node.
    pub(crate) fn new(names: impl Iterator<Item = usize>) -> Self {
        let (mut known, mut members): (HashMap<usize, usize>, Vec<Vec<usize>>) = Default::default();
        let number = |(member, name)| {
            let node = *known.entry(name).or_insert(members.len());
            if node == members.len() {
                members.push(Vec::new());
            }
            members[node].push(member);
            node
        };
        let of = names.enumerate().map(number).collect();
        Nodes { of, members }
    }

    /// Returns the node of a member; `None` if there is no such member.
    pub(crate) fn of(&self, member: usize) -> Option<usize> {
        self.of.get(member).copied()
    }

    /// Returns the members of a node.
    pub(crate) fn members(&self, node: usize) -> &[usize] {
        &self.members[node]
    }

    /// Returns the member of a node that represents it to the neighbour at `place` among the node's
    /// neighbours: members take turns.
    pub(crate) fn representative(&self, node: usize, place: usize) -> usize {
        let members = self.members(node);
        members[place % members.len()]
    }
}
