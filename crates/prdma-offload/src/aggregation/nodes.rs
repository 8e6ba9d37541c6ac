//! Which members share a node.

use crate::Result;
use rdma_fabric::Group;
use std::collections::BTreeMap;

/// The nodes of a group, numbered in the order in which members are on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    /// By member: its node.
    of: Vec<usize>,
    /// By node: its members.
    members: Vec<Vec<usize>>,
}

impl Nodes {
    pub(super) fn of_group(group: &Group) -> Result<Self> {
        let node = |member| Ok(group.fabric().node(group.rank(member)?)?.index());
        Ok(Nodes::new((0..group.len()).map(node).collect::<Result<Vec<_>>>()?.into_iter()))
    }

    /// Of members, each by any name of its node.
    pub(super) fn new(names: impl Iterator<Item = usize>) -> Self {
        let (mut known, mut members): (BTreeMap<usize, usize>, Vec<Vec<usize>>) = Default::default();
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

    /// The node of a member; `None` if there is no such.
    pub(super) fn of(&self, member: usize) -> Option<usize> {
        self.of.get(member).copied()
    }

    pub(super) fn members(&self, node: usize) -> &[usize] {
        &self.members[node]
    }

    /// The members of its node that represents it to the neighbour at `place` among the node's neighbours: in turn.
    pub(super) fn representative(&self, node: usize, place: usize) -> usize {
        let members = self.members(node);
        members[place % members.len()]
    }
}
