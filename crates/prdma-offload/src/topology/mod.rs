//! Who exchanges with whom.
//!
//! A member of a group has *slots*: sources to receive from and destinations to send to, in the order in which a program gives its blocks. The edge
//! of a slot names the other member and a *label*, which tells apart several edges between the same two: an edge from `a` to `b` has the same label at both.

/// One end of an edge, as a member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The member at the other end.
    pub member: usize,
    /// Which of the edges with the same source and destination it is.
    pub label: u32,
}

/// Sources and destinations of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// By slot; `None` where there is nobody (beyond a border).
    pub(crate) sources: Box<[Option<Edge>]>,
    /// By slot.
    pub(crate) destinations: Box<[Option<Edge>]>,
}

impl Topology {
    /// Whom blocks come from, by slot; `None` beyond a border, where nothing comes and the block stays as it is.
    pub fn sources(&self) -> &[Option<Edge>] {
        &self.sources
    }

    /// Whom blocks go to, by slot.
    pub fn destinations(&self) -> &[Option<Edge>] {
        &self.destinations
    }
}
