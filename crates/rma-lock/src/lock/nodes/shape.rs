//! The ranks that share a word: the levels between a rank and the lock.

use crate::Result;
use rdma_fabric::{Fabric, FabricError, GroupMemory, Node, Rank};

/// The levels above the ranks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Only nodes.
    Nodes,
    /// Nodes, groups of `radix` nodes, groups of `radix` of those, and so on, until at most `radix`
    /// are left. `radix` is at least 2.
    Tree {
        /// The number of units of one level that share a word of the next.
        radix: u32,
    },
}

/// The largest number of levels, including that of the nodes.
const MOST_LEVELS: usize = 8;

impl Levels {
    /// Returns the largest number of levels above `nodes` nodes, including that of the nodes. The
    /// units of the last level may be larger than the radix, if the radix is so small that more
    /// levels would be needed.
    pub(crate) fn count(self, nodes: usize) -> usize {
        let Levels::Tree { radix } = self else { return 1 };
        let radix = radix.max(2) as usize;
        let mut units = nodes;
        let mut levels = 1;
        while units > radix && levels < MOST_LEVELS {
            units = units.div_ceil(radix);
            levels += 1;
        }
        levels
    }

    /// Returns the number of nodes in a unit of `level`; level 0 is that of the nodes.
    fn span(self, level: usize) -> usize {
        match self {
            Levels::Nodes => 1,
            Levels::Tree { radix } => (radix.max(2) as usize).saturating_pow(level as u32),
        }
    }
}

/// The nodes of a lock's ranks.
enum Nodes<'a> {
    /// All nodes of the job.
    Job(&'a Fabric),
    /// The nodes of a group: its ranks, sorted by node.
    Listed(Vec<(Node, Rank)>),
}

impl<'a> Nodes<'a> {
    fn of(fabric: &'a Fabric, memory: &GroupMemory) -> Result<Self, FabricError> {
        if memory.members() == fabric.ranks() {
            return Ok(Nodes::Job(fabric));
        }
        let mut listed = Vec::with_capacity(memory.members());
        for rank in memory.ranks() {
            listed.push((fabric.node(rank)?, rank));
        }
        listed.sort_unstable_by_key(|(node, rank)| (node.index(), *rank));
        Ok(Nodes::Listed(listed))
    }

    fn count(&self) -> usize {
        match self {
            Nodes::Job(fabric) => fabric.facts().node_count(),
            Nodes::Listed(listed) => listed.chunk_by(|a, b| a.0 == b.0).count(),
        }
    }

    /// Returns the number of a rank's node among these nodes.
    fn number(&self, fabric: &Fabric, rank: Rank) -> Result<usize, FabricError> {
        let node = fabric.node(rank)?;
        Ok(match self {
            Nodes::Job(_) => node.index(),
            Nodes::Listed(listed) => {
                listed.chunk_by(|a, b| a.0 == b.0).take_while(|ranks| ranks[0].0.index() < node.index()).count()
            }
        })
    }

    /// Returns the first rank of node `number`, and whether the node has more ranks.
    fn first(&self, number: usize) -> Option<(Rank, bool)> {
        match self {
            Nodes::Job(fabric) => {
                let node = Node::new(number as u32);
                Some((fabric.facts().rank_on(node, 0)?, fabric.facts().rank_on(node, 1).is_some()))
            }
            Nodes::Listed(listed) => {
                let ranks = listed.chunk_by(|a, b| a.0 == b.0).nth(number)?;
                Some((ranks[0].1, ranks.len() > 1))
            }
        }
    }
}

/// Returns the number of this rank's node among the nodes of a lock's ranks, and the first of those
/// ranks on it.
pub(crate) fn own_node(fabric: &Fabric, memory: &GroupMemory) -> Result<(usize, Rank)> {
    let nodes = Nodes::of(fabric, memory)?;
    let number = nodes.number(fabric, fabric.rank())?;
    Ok((number, nodes.first(number).map_or(fabric.rank(), |(first, _)| first)))
}

/// Returns the first rank of each node of a lock's ranks, by the nodes' numbers.
pub(crate) fn first_ranks(fabric: &Fabric, memory: &GroupMemory) -> Result<Vec<Rank>> {
    Ok(match Nodes::of(fabric, memory)? {
        Nodes::Job(_) => {
            let first = |node| fabric.facts().rank_on(Node::new(node as u32), 0);
            (0..fabric.facts().node_count()).filter_map(first).collect()
        }
        Nodes::Listed(listed) => listed.chunk_by(|a, b| a.0 == b.0).map(|ranks| ranks[0].1).collect(),
    })
}

/// A level that this rank shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    /// 0 is the level of the nodes.
    pub(crate) level: usize,
    /// The rank that stores the words.
    pub(crate) at: Rank,
}

/// Returns all levels that this rank shares, from the lowest. A unit that consists of one rank, or
/// of one unit of the level below, is not shared.
///
/// The words of a node are at its first rank. Those of a larger unit are at the first rank of one
/// of its nodes, a different node for each level, so that no network interface serves all levels.
pub(crate) fn meetings(fabric: &Fabric, memory: &GroupMemory, levels: Levels) -> Result<Vec<Meeting>> {
    let nodes = Nodes::of(fabric, memory)?;
    let (count, mine) = (nodes.count(), nodes.number(fabric, fabric.rank())?);
    let mut meetings = Vec::new();
    for level in 0..levels.count(count) {
        let (span, below) = (levels.span(level), levels.span(level.saturating_sub(1)));
        let first = mine - mine % span;
        let units = if level == 0 { 1 } else { (count - first).min(span).div_ceil(below) };
        let node = first + level.min((count - first).min(span) - 1);
        let Some((at, more)) = nodes.first(node) else { continue };
        if units > 1 || level == 0 && more {
            meetings.push(Meeting { level, at });
        }
    }
    Ok(meetings)
}
